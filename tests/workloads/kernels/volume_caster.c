// Rays are cast through a volume: each thread has a queue of blocks of the picture, a number that counts up under a lock;
// who is done with its own goes on with the others'. A ray adds up what is dense until nothing shines through.
//
// Counterpart: VOLREND of SPLASH-2: queues that are counters with a lock each, all in one structure, and stealing; a
// volume and an octree (of one level) to skip what is empty, both only read; several frames, each a little turned. Each
// queue is a quarter of the picture. Rays are cast for all pixels, as there without its adaptive sampling.
//
// Expected candidates: the loads of a queue's lock and counter, the locks of the barriers. Not the loads of the volume.
#include "kernel.h"

#define TILE 4
#define FRAMES 4
#define TURN 3
#define COARSE 4 // Voxels of a cell of the octree's one level, in each direction.

static struct {
    lock_word locks[THREADS];
    struct {
        uint32_t next;
        uint32_t end;
    } queues[THREADS];
} shared ON_A_LINE;

static int side, width; // Of the volume and of the picture.
static uint8_t *density, *is_full;
static uint32_t *picture;

// The next block of a queue; -1 when it is empty.
OUT_OF_LINE static int block_of(int queue) {
    take(&shared.locks[queue]);
    uint32_t block = shared.queues[queue].next;
    int found = block < shared.queues[queue].end;
    if (found)
        shared.queues[queue].next = block + 1;
    release(&shared.locks[queue]);
    return found ? (int)block : -1;
}

// What a ray gathers that enters at x, y and leans by `lean` voxels over the whole depth.
OUT_OF_LINE static uint32_t gather(int x, int y, int lean) {
    uint32_t light = 0, clear = 1 << 12;
    int coarse = side / COARSE;
    for (int z = 0; z < side; z++) {
        int at = (x + z * lean / side) % side;
        if (z % COARSE == 0 && !is_full[(z / COARSE * coarse + y / COARSE) * coarse + at / COARSE] &&
            at / COARSE == (x + (z + COARSE - 1) * lean / side) % side / COARSE) {
            z += COARSE - 1;
            continue;
        }
        uint32_t here = density[(z * side + y) * side + at];
        light += clear * here >> 8;
        clear -= clear * here >> 8;
        if (clear < 64)
            break;
    }
    return light;
}

OUT_OF_LINE static void render_block(uint32_t *pixels, int left, int top, int frame) {
    for (int y = top; y < top + TILE; y++)
        for (int x = left; x < left + TILE; x++)
            pixels[y * width + x] = gather(x * side / width, y * side / width, frame * TURN);
}

static void *cast(void *argument) {
    int thread = (int)(intptr_t)argument, across = width / TILE / 2;
    for (int frame = 0; frame < FRAMES; frame++) {
        shared.queues[thread].next = 0;
        shared.queues[thread].end = across * across;
        wait_for_all();
        for (int n = 0; n < THREADS; n++) {
            int quarter = (thread + n) % THREADS;
            for (int block; (block = block_of(quarter)) >= 0;) {
                if (!(SABOTAGED && frame == FRAMES - 1 && quarter == 0 && block == across * across - 1))
                    render_block(picture, (quarter % 2 * across + block % across) * TILE,
                                 (quarter / 2 * across + block / across) * TILE, frame);
                take_turns();
            }
        }
        wait_for_all();
    }
    return 0;
}

int main(int argc, char **argv) {
    int ref = is_ref(argc, argv);
    side = ref ? 48 : 24;
    width = ref ? 128 : 48;
    int coarse = side / COARSE;
    density = lines(side * side * side);
    is_full = lines(coarse * coarse * coarse);
    picture = lines(width * width * sizeof *picture);
    // Balls of different density in empty space.
    uint64_t state = 29;
    for (int n = 0; n < 12; n++) {
        int centre[3], radius = side / 12 + next_random(&state) % (side / 12);
        for (int axis = 0; axis < 3; axis++)
            centre[axis] = radius + next_random(&state) % (side - 2 * radius);
        for (int z = -radius; z < radius; z++)
            for (int y = -radius; y < radius; y++)
                for (int x = -radius; x < radius; x++)
                    if (x * x + y * y + z * z < radius * radius) {
                        int at[3] = {centre[0] + x, centre[1] + y, centre[2] + z};
                        density[(at[2] * side + at[1]) * side + at[0]] = 8 + n * 2;
                        is_full[(at[2] / COARSE * coarse + at[1] / COARSE) * coarse + at[0] / COARSE] = 1;
                    }
    }
    run_threads(cast);
    uint32_t *again = lines(width * width * sizeof *again);
    for (int top = 0; top < width; top += TILE)
        for (int left = 0; left < width; left += TILE)
            render_block(again, left, top, FRAMES - 1);
    uint64_t checksum = 0;
    int right = 1;
    for (int n = 0; n < width * width; n++) {
        right &= picture[n] == again[n];
        checksum = with(checksum, picture[n]);
    }
    return answer("volume_caster", right, checksum);
}
