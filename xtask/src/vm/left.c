// What the kernel holds for tracers, as one line of JSON: BPF programs, maps and links by its own lists, data
// breakpoints that are free on each CPU, and bytes of a process's code that are not those of its files, which is where
// uprobes are.
//
// Usage: left [PID]

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/hw_breakpoint.h>
#include <linux/perf_event.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

// Objects in one of the kernel's lists; -1 where it cannot be read.
static long count(int next_id) {
    union bpf_attr attr;
    long found = 0;
    memset(&attr, 0, sizeof attr);
    while (syscall(SYS_bpf, next_id, &attr, sizeof attr) == 0) {
        attr.start_id = attr.next_id;
        found++;
    }
    return errno == ENOENT ? found : -1;
}

// Breakpoints that can be had on a CPU, up to the four that x86-64 has.
static int free_breakpoints(int cpu) {
    static uint64_t word;
    struct perf_event_attr attr;
    int opened[4], had = 0;
    memset(&attr, 0, sizeof attr);
    attr.type = PERF_TYPE_BREAKPOINT;
    attr.size = sizeof attr;
    attr.bp_type = HW_BREAKPOINT_W;
    attr.bp_addr = (uintptr_t)&word;
    attr.bp_len = HW_BREAKPOINT_LEN_8;
    while (had < 4 && (opened[had] = syscall(SYS_perf_event_open, &attr, -1, cpu, -1, 0)) >= 0)
        had++;
    for (int i = 0; i < had; i++)
        close(opened[i]);
    return had;
}

// Bytes in which a range of a process's memory differs from the part of the file that is mapped there.
static long difference(int memory, const char *path, uint64_t start, uint64_t end, uint64_t offset) {
    int file = open(path, O_RDONLY | O_CLOEXEC);
    long differ = 0;
    if (file < 0)
        return -1;
    while (start < end) {
        unsigned char is[4096], was[4096];
        ssize_t got = pread(memory, is, sizeof is, start);
        ssize_t had = pread(file, was, sizeof was, offset);
        if (got <= 0 || had <= 0)
            break;
        for (ssize_t i = 0; i < got && i < had; i++)
            differ += is[i] != was[i];
        start += sizeof is;
        offset += sizeof is;
    }
    close(file);
    return differ;
}

// The same for all code of a process; -1 where it cannot be read.
static long changed_code(const char *pid) {
    char path[64], line[512], permissions[8], name[256];
    uint64_t start, end, offset;
    long differ = 0;
    snprintf(path, sizeof path, "/proc/%s/mem", pid);
    int memory = open(path, O_RDONLY | O_CLOEXEC);
    snprintf(path, sizeof path, "/proc/%s/maps", pid);
    FILE *maps = fopen(path, "r");
    if (memory < 0 || maps == NULL)
        return -1;
    while (fgets(line, sizeof line, maps)) {
        int fields = sscanf(line, "%lx-%lx %7s %lx %*s %*s %255s", &start, &end, permissions, &offset, name);
        if (fields != 5 || name[0] != '/' || strchr(permissions, 'x') == NULL)
            continue;
        long here = difference(memory, name, start, end, offset);
        if (here < 0)
            return -1;
        differ += here;
    }
    fclose(maps);
    close(memory);
    return differ;
}

int main(int argc, char **argv) {
    long cpus = sysconf(_SC_NPROCESSORS_ONLN);
    printf("{\"programs\": %ld, \"maps\": %ld, \"links\": %ld, \"breakpoints\": [", count(BPF_PROG_GET_NEXT_ID),
           count(BPF_MAP_GET_NEXT_ID), count(BPF_LINK_GET_NEXT_ID));
    for (int cpu = 0; cpu < cpus; cpu++)
        printf(cpu == 0 ? "%d" : ", %d", free_breakpoints(cpu));
    printf("]");
    if (argc > 1)
        printf(", \"changed_code\": %ld", changed_code(argv[1]));
    printf("}\n");
    return 0;
}
