// Rays are cast through a scene of balls: each thread has a pool of jobs, bundles of pixels; who has none left takes them
// from others' pools. Every ray gets a number of its own.
//
// Counterpart: RAYTRACE of SPLASH-2: pools of jobs as lists with a lock each, stealing, one number of rays with its lock,
// both in one structure that all threads share; a scene that is only read; one picture.
//
// Expected candidates: the loads of the number of rays and of its lock, of a pool's lock and first job. Not the loads of
// the scene.
#include <math.h>

#include "kernel.h"

#define BUNDLE 4

struct job {
    struct job *next;
    int x, y;
};

struct ball {
    double centre[3];
    double radius;
    uint32_t colour;
};

// Laid out as there: numbers first, then what is waited for, then locks.
static struct {
    uint64_t rays;
    uint64_t unused[16];
    lock_word ray_lock;
    lock_word pool_lock[THREADS];
    uint32_t pool_is_empty[THREADS];
    struct job *pool[THREADS];
} shared ON_A_LINE;

static struct ball *balls;
static int side, ball_count;
static uint32_t *picture;
// Of the numbers that a thread's rays got: all numbers are given once.
static uint64_t sum_of_numbers[THREADS][LINE / sizeof(uint64_t)] ON_A_LINE;

OUT_OF_LINE static uint64_t number_of_ray(void) {
    take(&shared.ray_lock);
    uint64_t number = shared.rays;
    shared.rays = number + 1;
    release(&shared.ray_lock);
    return number;
}

OUT_OF_LINE static struct job *job_from(int pool) {
    if (__atomic_load_n(&shared.pool_is_empty[pool], __ATOMIC_RELAXED))
        return 0;
    take(&shared.pool_lock[pool]);
    struct job *job = shared.pool[pool];
    if (job)
        shared.pool[pool] = job->next;
    else
        __atomic_store_n(&shared.pool_is_empty[pool], 1, __ATOMIC_RELAXED);
    release(&shared.pool_lock[pool]);
    return job;
}

// How far the ray gets until it meets a ball; `met` is that ball, -1 where it meets none.
OUT_OF_LINE static double nearest(const double from[3], const double direction[3], int *met) {
    double best = 1e30;
    *met = -1;
    for (int n = 0; n < ball_count; n++) {
        const struct ball *ball = &balls[n];
        double along = 0, square = 0;
        for (int axis = 0; axis < 3; axis++) {
            double apart = ball->centre[axis] - from[axis];
            along += apart * direction[axis];
            square += apart * apart;
        }
        double inside = ball->radius * ball->radius - square + along * along;
        double distance = inside < 0 ? -1 : along - sqrt(inside);
        if (distance > 1e-6 && distance < best) {
            best = distance;
            *met = n;
        }
    }
    return best;
}

// The colour of a pixel, and how many rays it took.
static uint32_t colour_of(int x, int y, uint64_t *rays) {
    static const double light[3] = {0.48, 0.6, -0.64};
    double from[3] = {(x + 0.5) / side, (y + 0.5) / side, -1}, direction[3] = {0, 0, 1};
    int met;
    ++*rays;
    double distance = nearest(from, direction, &met);
    if (met < 0)
        return 0;
    const struct ball *ball = &balls[met];
    double bright = 0;
    from[2] += distance;
    for (int axis = 0; axis < 3; axis++)
        bright += (from[axis] - ball->centre[axis]) / ball->radius * light[axis];
    if (bright <= 0)
        return ball->colour << 8 | 16;
    int shade;
    ++*rays;
    nearest(from, light, &shade);
    return ball->colour << 8 | (shade < 0 ? 16 + (uint32_t)(bright * 200) : 16);
}

static void *cast(void *argument) {
    int thread = (int)(intptr_t)argument;
    uint64_t sum = 0;
    wait_for_all();
    for (int n = 0; n < THREADS; n++)
        for (struct job *job; (job = job_from((thread + n) % THREADS));) {
            for (int y = job->y; y < job->y + BUNDLE; y++)
                for (int x = job->x; x < job->x + BUNDLE; x++) {
                    uint64_t rays = 0;
                    uint32_t colour = colour_of(x, y, &rays);
                    for (uint64_t n = SABOTAGED && x == side / 2 && y == side / 2; n < rays; n++)
                        sum += number_of_ray();
                    picture[y * side + x] = colour;
                }
            take_turns();
        }
    sum_of_numbers[thread][0] = sum;
    return 0;
}

int main(int argc, char **argv) {
    int ref = is_ref(argc, argv);
    side = ref ? 128 : 48;
    ball_count = ref ? 48 : 24;
    balls = lines(ball_count * sizeof *balls);
    picture = lines(side * side * sizeof *picture);
    int across = side / BUNDLE;
    struct job *jobs = lines(across * across * sizeof *jobs);
    uint64_t state = 19;
    for (int n = 0; n < ball_count; n++) {
        for (int axis = 0; axis < 3; axis++)
            balls[n].centre[axis] = next_fraction(&state);
        balls[n].radius = 0.02 + next_fraction(&state) / 8;
        balls[n].colour = n + 1;
    }
    // Each pool begins with a block of the picture.
    for (int n = 0; n < across * across; n++) {
        struct job *job = &jobs[n];
        job->x = n % across * BUNDLE;
        job->y = n / across * BUNDLE;
        int pool = n * THREADS / (across * across);
        job->next = shared.pool[pool];
        shared.pool[pool] = job;
    }
    run_threads(cast);
    uint64_t checksum = 0, rays = 0;
    int right = 1;
    for (int y = 0; y < side; y++)
        for (int x = 0; x < side; x++) {
            right &= picture[y * side + x] == colour_of(x, y, &rays);
            checksum = with(checksum, picture[y * side + x]);
        }
    uint64_t sum = 0;
    for (int thread = 0; thread < THREADS; thread++)
        sum += sum_of_numbers[thread][0];
    right &= shared.rays == rays && sum == rays * (rays - 1) / 2;
    return answer("ray_caster", right, checksum);
}
