/* Threads whose words are read while others are held. What they do is compiled in. */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <unistd.h>

#ifdef PADDED
#define APART _Alignas(64)
#else
#define APART
#endif

static struct {
    _Alignas(64) atomic_long own;
    APART atomic_long other;
} words;
_Alignas(64) static atomic_int locked;
_Alignas(64) static atomic_long interrupted;

static void work(int turns)
{
    for (volatile int i = 0; i < turns; i++)
        ;
}

static void *own(void *unused)
{
    pthread_setname_np(pthread_self(), "own");
    for (;;) {
#ifdef LOCK
        while (atomic_exchange(&locked, 1))
            ;
        atomic_fetch_add(&words.own, 1);
        atomic_store(&locked, 0);
#else
        atomic_fetch_add(&words.own, 1);
#endif
    }
    return unused;
}

static void *other(void *unused)
{
    pthread_setname_np(pthread_self(), "other");
#ifdef WAITS
    int waits = epoll_create1(0);
    struct epoll_event event;
    for (;;)
        if (epoll_wait(waits, &event, 1, 3600 * 1000) < 0 && errno == EINTR)
            atomic_fetch_add(&interrupted, 1);
#endif
    for (;;) {
#ifdef LOCK
        while (atomic_exchange(&locked, 1))
            ;
        work(2000);
        atomic_store(&locked, 0);
        work(100);
#else
        atomic_fetch_add(&words.other, 1);
#endif
    }
    return unused;
}

int main(void)
{
    pthread_t threads[2];
    pthread_create(&threads[0], NULL, own, NULL);
    pthread_create(&threads[1], NULL, other, NULL);
    printf("own %p\nother %p\ninterrupted %p\nend\n", (void *)&words.own, (void *)&words.other, (void *)&interrupted);
    fflush(stdout);
    getchar();
    _exit(0);
}
