/* Two threads count events, each in a counter of its own. The counters are neighbours, so they share
 * a cache line, and every increment takes the line away from the other CPU. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#ifdef PADDED
#define OWN_LINE _Alignas(64)
#else
#define OWN_LINE
#endif

struct counters {
    OWN_LINE volatile long hits;   /* written by the thread "hitter" only */
    OWN_LINE volatile long misses; /* written by the thread "misser" only */
};

_Alignas(64) static struct counters counters;
_Alignas(64) static volatile int stop;

static void *count_hits(void *unused)
{
    while (!stop)
        counters.hits++;
    return unused;
}

static void *count_misses(void *unused)
{
    while (!stop)
        counters.misses++;
    return unused;
}

int main(int argc, char **argv)
{
    pthread_t hitter, misser;
    if (pthread_create(&hitter, NULL, count_hits, NULL) || pthread_create(&misser, NULL, count_misses, NULL))
        return 1;
    pthread_setname_np(hitter, "hitter");
    pthread_setname_np(misser, "misser");
    usleep(1000 * (argc > 1 ? (unsigned)atoi(argv[1]) : 3000));
    stop = 1;
    pthread_join(hitter, NULL);
    pthread_join(misser, NULL);
    fprintf(stderr, "demo: %ld hits, %ld misses\n", counters.hits, counters.misses);
    return 0;
}
