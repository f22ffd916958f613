// Two volatile fields of one object, each counted up by a thread of its own.
//
// Known by the source: the fields are neighbours (HotSpot lays longs of one class side by side), and each has one
// writer and no reader. The fence after a volatile store (`lock addl $0,-64(%rsp)`) is where a CPU waits: it waits for
// the field and not for the stack. Code is named by HotSpot's own perf map, asked for once it is compiled.
//
// FIELD: {"language": "java", "apt": ["default-jdk-headless"], "findings": [
//   {"kinds": ["false-sharing"], "names": [], "functions": ["goLeft", "goRight"], "not_on": ["stack"],
//    "advice_never": ["aligned_alloc"]}]}
import java.util.concurrent.TimeUnit;

public class java_fields {
    static final class Counters {
        volatile long left;
        volatile long right;
    }

    static final Counters counters = new Counters();

    static void goLeft(Counters c, long n) {
        for (long i = 0; i < n; i++) c.left = i;
    }

    static void goRight(Counters c, long n) {
        for (long i = 0; i < n; i++) c.right = i;
    }

    public static void main(String[] arguments) throws Exception {
        for (int k = 0; k < 100; k++) {
            goLeft(counters, 20000);
            goRight(counters, 20000);
        }
        Thread left = new Thread(() -> { while (true) goLeft(counters, 100_000_000); }, "left");
        Thread right = new Thread(() -> { while (true) goRight(counters, 100_000_000); }, "right");
        for (Thread thread : new Thread[] {left, right}) {
            thread.setDaemon(true);
            thread.start();
        }
        TimeUnit.MILLISECONDS.sleep(1500);
        long pid = ProcessHandle.current().pid();
        new ProcessBuilder("jcmd", Long.toString(pid), "Compiler.perfmap").start().waitFor();
        System.out.println("ready " + pid);
        TimeUnit.MINUTES.sleep(2);
    }
}
