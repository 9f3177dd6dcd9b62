/* The yardstick of the scan benchmark: what a C program with the same system calls takes.
 *
 * scan LOG_DIR          one line per partition dir: name, inode, topic ID
 * scan --sizes LOG_DIR  and the bytes, bytes on disk, files, leftovers and newest mtime (ms) of its plain files
 *
 * For each directory it makes the calls that logstore makes: open, read, close for partition.metadata; with --sizes also
 * open, fstat, getdents until it is empty, close for the directory, and lstat for each entry. It has no limits, no damage
 * reports and no other forms of a file: it says what the calls cost, and how near Python comes.
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FLAGS (O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC | O_NOCTTY)
#define ID_AT 21 /* bytes before the topic ID in the shipped form of partition.metadata */

static int is_leftover(const char *name)
{
    static const char *const suffixes[] = {".deleted", ".cleaned", ".swap", ".tmp", ".part"};
    size_t length = strlen(name);
    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++) {
        size_t tail = strlen(suffixes[i]);
        if (length >= tail && memcmp(name + length - tail, suffixes[i], tail) == 0)
            return 1;
    }
    return 0;
}

static void print_sizes(const char *path)
{
    long long bytes = 0, blocks = 0, newest = 0;
    int files = 0, leftovers = 0;
    char file[8192];
    DIR *directory = opendir(path);
    struct dirent *entry;
    if (directory == NULL)
        return;
    while ((entry = readdir(directory)) != NULL) {
        struct stat status;
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        snprintf(file, sizeof file, "%s/%s", path, entry->d_name);
        if (lstat(file, &status) != 0 || !S_ISREG(status.st_mode))
            continue;
        long long modified = status.st_mtim.tv_sec * 1000LL + status.st_mtim.tv_nsec / 1000000;
        files++;
        bytes += status.st_size;
        blocks += status.st_blocks;
        leftovers += is_leftover(entry->d_name);
        if (modified > newest)
            newest = modified;
    }
    closedir(directory);
    printf("\t%lld\t%lld\t%d\t%d\t%lld", bytes, blocks * 512, files, leftovers, newest);
}

int main(int count, char **arguments)
{
    int sizes = count == 3 && strcmp(arguments[1], "--sizes") == 0;
    if (count != 2 + sizes) {
        fprintf(stderr, "usage: scan [--sizes] LOG_DIR\n");
        return 2;
    }
    const char *log_dir = arguments[1 + sizes];
    DIR *root = opendir(log_dir);
    struct dirent *entry;
    if (root == NULL) {
        perror(log_dir);
        return 1;
    }
    while ((entry = readdir(root)) != NULL) {
        char path[4096], file[8192], data[512];
        if (entry->d_type != DT_DIR || entry->d_name[0] == '.')
            continue;
        snprintf(path, sizeof path, "%s/%s", log_dir, entry->d_name);
        printf("%s\t%llu", entry->d_name, (unsigned long long)entry->d_ino);
        if (sizes)
            print_sizes(path);
        snprintf(file, sizeof file, "%s/partition.metadata", path);
        int descriptor = open(file, FLAGS);
        if (descriptor >= 0) {
            ssize_t length = read(descriptor, data, sizeof data);
            close(descriptor);
            if (length > ID_AT)
                printf("\t%.*s", (int)(length - ID_AT), data + ID_AT);
        }
        putchar('\n');
    }
    closedir(root);
    return 0;
}
