/* The yardstick of tools/bench stage: bare renames, with nothing that makes them safe.
 *
 *   stage LOG_DIR TARGET_DIR      renames every directory of LOG_DIR whose name has a '-' into TARGET_DIR
 *
 * The names are read first; then only the renames are timed, and the seconds printed.
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static double now(void) {
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    return (double)at.tv_sec + (double)at.tv_nsec / 1e9;
}

int main(int argc, char **argv) {
    if (argc != 3) {
        fprintf(stderr, "usage: stage LOG_DIR TARGET_DIR\n");
        return 2;
    }
    int target = open(argv[2], O_RDONLY | O_DIRECTORY);
    DIR *listing = opendir(argv[1]);
    if (target < 0 || listing == NULL) {
        perror("stage");
        return 1;
    }
    size_t count = 0, room = 1024;
    char **names = malloc(room * sizeof *names);
    struct dirent *entry;
    while (names != NULL && (entry = readdir(listing)) != NULL) {
        if (entry->d_type != DT_DIR || strchr(entry->d_name, '-') == NULL) continue;
        if (count == room) names = realloc(names, (room *= 2) * sizeof *names);
        if (names != NULL) names[count++] = strdup(entry->d_name);
    }
    if (names == NULL) return 1;
    double started = now();
    for (size_t index = 0; index < count; index++) {
        if (renameat(dirfd(listing), names[index], target, names[index]) != 0) {
            perror(names[index]);
            return 1;
        }
    }
    printf("%.6f\n", now() - started);
    return 0;
}
