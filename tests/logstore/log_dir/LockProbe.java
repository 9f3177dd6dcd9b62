// Takes the lock of a log dir as a broker does, FileChannel.tryLock over the whole of .lock (FACTS §2.7), on command.
// Reads lines from standard input and answers each with one line:
//   take PATH     "held", or "refused" where tryLock gives null or this JVM has it already
//   release       "released"
// The lock is kept until it is released or the program ends.

import java.io.BufferedReader;
import java.io.File;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.channels.FileChannel;
import java.nio.channels.FileLock;
import java.nio.channels.OverlappingFileLockException;
import java.nio.file.StandardOpenOption;

public class LockProbe {
    private static FileChannel channel;
    private static FileLock lock;

    public static void main(String[] arguments) throws IOException {
        BufferedReader commands = new BufferedReader(new InputStreamReader(System.in));
        System.out.println("ready " + ProcessHandle.current().pid());
        for (String line = commands.readLine(); line != null; line = commands.readLine()) {
            System.out.println(line.startsWith("take ") ? take(line.substring(5)) : release());
            System.out.flush();
        }
    }

    private static String take(String path) throws IOException {
        FileChannel opened = FileChannel.open(new File(path).toPath(), StandardOpenOption.CREATE,
                StandardOpenOption.READ, StandardOpenOption.WRITE);
        try {
            FileLock taken = opened.tryLock();
            if (taken != null) {
                channel = opened;
                lock = taken;
                return "held";
            }
        } catch (OverlappingFileLockException mine) {
            return "refused";
        }
        opened.close();
        return "refused";
    }

    private static String release() throws IOException {
        lock.release();
        channel.close();
        return "released";
    }
}
