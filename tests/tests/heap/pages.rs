//! Pages that a program maps are named by who mapped them, and those that its allocator maps are not.

use cohtrace_tests::live::ready;

use super::{build, names_made, observe};

/// Two threads count on one line of pages that `make` gets in one of several ways.
const PAGES: &str = r#"
#define _GNU_SOURCE
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
enum { PAGE = 4096, BIG = 1 << 20 };
static volatile int stop;
static void *count(void *argument) {
    volatile unsigned long *mine = argument;
    while (!stop)
        ++*mine;
    return 0;
}
static void *storm(void *unused) {
    while (!stop) {
        void *block = malloc(24);
        __asm__ volatile("" : : "r"(block) : "memory");
        free(block);
    }
    return unused;
}
static void *pages(int count) {
    return mmap(0, count * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}
static __attribute__((noinline)) char *make(void) {
    char *made;
#if defined BIG_MALLOC
    free(malloc(BIG));
    made = malloc(BIG);
#elif defined LEFT
    made = pages(3);
    munmap(made + PAGE, PAGE);
    made += 2 * PAGE;
#elif defined REMAPPED
    made = mremap(pages(2), 2 * PAGE, 5 * PAGE, MREMAP_MAYMOVE);
#else
    pthread_t thread;
    pthread_create(&thread, 0, storm, 0);
    usleep(700000);
    made = pages(3);
#endif
    __asm__ volatile("" : "+r"(made));
    return made;
}
int main(void) {
    unsigned long *both = (unsigned long *)(((unsigned long)make() + 63) / 64 * 64);
    (void)storm;
    pthread_t one, other;
    pthread_create(&one, 0, count, &both[0]);
    pthread_create(&other, 0, count, &both[1]);
    usleep(2500000);
    _exit(0);
}
"#;

#[test]
fn a_malloc_that_maps_pages_is_the_malloc() {
    let Some(_turn) = ready() else { return };
    for flags in [&["-DBIG_MALLOC"][..], &["-DBIG_MALLOC", "-static"]] {
        let program = build(&format!("pages_big_{}", flags.len()), PAGES, flags);
        names_made(&mut observe(&program), "malloc", 1 << 20, 0);
    }
}

#[test]
fn what_is_left_of_a_mapping_is_a_part_of_what_was_mapped() {
    let Some(_turn) = ready() else { return };
    let program = build("pages_left", PAGES, &["-DLEFT"]);
    names_made(&mut observe(&program), "mmap", 3 * 4096, 2 * 4096);
}

#[test]
fn pages_that_were_moved_are_named_by_the_mremap() {
    let Some(_turn) = ready() else { return };
    let program = build("pages_remapped", PAGES, &["-DREMAPPED"]);
    names_made(&mut observe(&program), "mremap", 5 * 4096, 0);
}

#[test]
fn a_mapping_is_seen_while_a_storm_of_mallocs_is_not() {
    let Some(_turn) = ready() else { return };
    let program = build("pages_storm", PAGES, &[]);
    names_made(&mut observe(&program), "mmap", 3 * 4096, 0);
}
