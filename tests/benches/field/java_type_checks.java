// Two threads ask objects of one class, by turns, for two interfaces.
//
// Known by JDK-8180450 (in 17 not repaired) and HotSpot's klass.hpp: each check that fails the cache stores the
// interface in `Klass::_secondary_super_cache`, one word of the class for all threads: truly shared. Its neighbour
// `_secondary_supers`, which each search reads, suffers from it. Both lie in metaspace: neither heap nor stack.
// Here, two threads take three times as long for each object as one.
//
// FIELD: {"language": "java", "apt": ["default-jdk-headless"], "findings": [
//   {"kinds": ["true-sharing", "mixed-sharing"], "names": [], "functions": ["check", "StubRoutines", "java_type_checks"],
//    "not_on": ["stack"], "advice_never": ["aligned_alloc"]}]}
import java.util.concurrent.TimeUnit;

public class java_type_checks {
    interface Red { }
    interface Blue { }
    static class Both implements Red, Blue { }
    static class Either implements Red, Blue, Comparable<Either> {
        public int compareTo(Either other) { return 0; }
    }

    static boolean isRed(Object o) { return o instanceof Red; }
    static boolean isBlue(Object o) { return o instanceof Blue; }

    static long check(Object[] objects, long n) {
        long found = 0;
        for (long i = 0; i < n; i++) {
            Object o = objects[(int) i & 63];
            if (isRed(o)) found++;
            if (isBlue(o)) found++;
        }
        return found;
    }

    static volatile long sink;

    public static void main(String[] arguments) throws Exception {
        // With many classes at first, so that the compiler trusts none of them.
        Object[] mixed = {new Both(), new Either(), "text", 7, new int[0]};
        Object[] warm = new Object[64], objects = new Object[64];
        for (int i = 0; i < 64; i++) {
            warm[i] = mixed[i % 5];
            objects[i] = mixed[0];
        }
        for (int k = 0; k < 3000; k++) sink += check(warm, 1000);
        for (int t = 0; t < 2; t++) {
            Thread thread = new Thread(() -> { while (true) sink = check(objects, 10_000_000); }, "checker-" + t);
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
