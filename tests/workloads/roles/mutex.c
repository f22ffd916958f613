// A mutex of the library, whose code decides, not its name; and a flag that one thread raises and the other takes down.
//
// ROLES: {"mutex": "lock", "posted": "flag"}
// NEVER: index counter reference-count

#define _GNU_SOURCE
#include "../stage/stage.h"

struct box {
    pthread_mutex_t mutex;
    int posted;
};

struct box box __attribute__((aligned(64))) = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static void *post(void *unused) {
    (void)unused;
    uintptr_t n = 0;
    while (running()) {
        pthread_mutex_lock(&box.mutex);
        n++;
        pthread_mutex_unlock(&box.mutex);
        __atomic_store_n(&box.posted, 1, __ATOMIC_RELEASE);
    }
    return (void *)n;
}

static void *take(void *unused) {
    (void)unused;
    uintptr_t n = 0;
    while (running()) {
        pthread_mutex_lock(&box.mutex);
        n++;
        pthread_mutex_unlock(&box.mutex);
        if (__atomic_load_n(&box.posted, __ATOMIC_ACQUIRE) != 0)
            __atomic_store_n(&box.posted, 0, __ATOMIC_RELEASE);
    }
    return (void *)n;
}

int main(int argc, char **argv) {
    pthread_t poster = start("poster", post, NULL);
    pthread_t taker = start("taker", take, NULL);
    run_for_argument(argc, argv);
    int right = finish(poster) > 0 && finish(taker) > 0;
    return verdict(right, same_line(&box.mutex, &box.posted));
}
