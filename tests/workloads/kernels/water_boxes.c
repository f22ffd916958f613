// Molecules in boxes: each thread computes the forces between the molecules of its boxes and those of the boxes around,
// moves its molecules, and puts those that leave a box into another.
//
// Counterpart: WATER-SPATIAL of SPLASH-2, with the paper's numbers of molecules: three atoms each, lists of molecules by
// box, a cutoff, sums of all threads under locks. A force is added to both molecules of a pair under each one's lock, as
// in WATER-NSQUARED; each thread does so once for all pairs of a molecule with a box. Integers: exact, whatever the order.
//
// Expected candidates: the loads of a molecule's lock and force, of a box's lock and first molecule, of the sums and their
// locks, and where a molecule is moved. Not the loads of positions while forces are computed.
#include "kernel.h"

#define ATOMS 3
#define STEPS 4
#define BOX (1 << 16)
#define CUTOFF BOX

struct molecule {
    int64_t position[ATOMS][3] ON_A_LINE;
    uint32_t next; // In the box; number and 1.
    int64_t velocity[ATOMS][3] ON_A_LINE;
    // There the derivatives keep forces from positions; what others add to is on a line of its own here as well.
    int64_t force[ATOMS][3] ON_A_LINE;
    uint64_t pairs;
    lock_word lock;
};

struct box {
    lock_word lock;
    uint32_t first; // Number of a molecule and 1; 0 is none.
};

static struct molecule *molecules;
static struct box *boxes;
static int count, across;
static struct {
    lock_word energy_lock;
    int64_t energy;
    lock_word motion_lock;
    int64_t motion;
} sums ON_A_LINE;

static int64_t wrapped(int64_t distance) {
    int64_t whole = (int64_t)across * BOX;
    return distance > whole / 2 ? distance - whole : distance < -whole / 2 ? distance + whole : distance;
}

static int box_of(const struct molecule *molecule) {
    int number = 0;
    for (int axis = 0; axis < 3; axis++)
        number = number * across + molecule->position[0][axis] / BOX;
    return number;
}

// Adds the force of the pair to one and takes it from the other; does nothing beyond the cutoff, and says whether it did.
static int interact(const int64_t (*a)[3], const int64_t (*b)[3], int64_t (*to_a)[3], int64_t (*to_b)[3],
                    int64_t *energy) {
    int64_t square = 0;
    for (int axis = 0; axis < 3; axis++) {
        int64_t apart = wrapped(b[0][axis] - a[0][axis]);
        square += apart * apart;
    }
    if (square >= (int64_t)CUTOFF * CUTOFF)
        return 0;
    for (int i = 0; i < ATOMS; i++)
        for (int j = 0; j < ATOMS; j++) {
            int64_t apart[3], near = 1 << 20;
            for (int axis = 0; axis < 3; axis++) {
                apart[axis] = wrapped(b[j][axis] - a[i][axis]);
                near += apart[axis] * apart[axis];
            }
            int64_t charge = (i ? 1 : -2) * (j ? 1 : -2);
            for (int axis = 0; axis < 3; axis++) {
                int64_t pull = charge * apart[axis] * (1 << 22) / near;
                to_a[i][axis] -= pull;
                to_b[j][axis] += pull;
            }
            *energy += charge * (1ll << 40) / near;
        }
    return 1;
}

OUT_OF_LINE static void add_force(struct molecule *to, int64_t (*force)[3], uint64_t pairs) {
    take(&to->lock);
    for (int atom = 0; atom < ATOMS; atom++)
        for (int axis = 0; axis < 3; axis++)
            to->force[atom][axis] += force[atom][axis];
    to->pairs += pairs;
    release(&to->lock);
}

OUT_OF_LINE static int64_t add_forces(struct molecule *a, uint32_t others) {
    int64_t energy = 0, on_a[ATOMS][3] = {0};
    uint64_t pairs = 0;
    for (; others; others = molecules[others - 1].next) {
        struct molecule *b = &molecules[others - 1];
        int64_t on_b[ATOMS][3] = {0};
        if (interact((const int64_t(*)[3])a->position, (const int64_t(*)[3])b->position, on_a, on_b, &energy)) {
            add_force(b, on_b, 1);
            pairs++;
        }
    }
    if (pairs)
        add_force(a, on_a, pairs);
    return energy;
}

OUT_OF_LINE static void add_to(lock_word *lock, int64_t *sum, int64_t more) {
    take(lock);
    *sum += more;
    release(lock);
}

static void put(uint32_t number) {
    struct box *box = &boxes[box_of(&molecules[number])];
    take(&box->lock);
    molecules[number].next = box->first;
    box->first = number + 1;
    release(&box->lock);
}

OUT_OF_LINE static int64_t move(struct molecule *molecule) {
    int64_t motion = 0, shift[3], whole = (int64_t)across * BOX;
    for (int atom = 0; atom < ATOMS; atom++)
        for (int axis = 0; axis < 3; axis++) {
            molecule->velocity[atom][axis] += molecule->force[atom][axis];
            molecule->force[atom][axis] = 0;
            molecule->position[atom][axis] += molecule->velocity[atom][axis] / 4;
            motion += molecule->velocity[atom][axis] * molecule->velocity[atom][axis];
        }
    // The first atom stays inside, the others wherever they are beside it.
    for (int axis = 0; axis < 3; axis++) {
        int64_t inside = (molecule->position[0][axis] % whole + whole) % whole;
        shift[axis] = inside - molecule->position[0][axis];
    }
    for (int atom = 0; atom < ATOMS; atom++)
        for (int axis = 0; axis < 3; axis++)
            molecule->position[atom][axis] += shift[axis];
    return motion;
}

// The neighbours that come after, of each pair of boxes one.
static int neighbour(int box, int direction) {
    int number = 0, place[3] = {box / across / across, box / across % across, box % across};
    int step[3] = {direction / 9 - 1, direction / 3 % 3 - 1, direction % 3 - 1};
    for (int axis = 0; axis < 3; axis++)
        number = number * across + (place[axis] + step[axis] + across) % across;
    return number;
}

static void *simulate(void *argument) {
    int thread = (int)(intptr_t)argument;
    int all = across * across * across, first = all * thread / THREADS, end = all * (thread + 1) / THREADS;
    uint32_t *mine = lines(count * sizeof *mine);
    for (int step = 0; step < STEPS; step++) {
        wait_for_all();
        int64_t energy = 0, motion = 0;
        for (int box = first; box < end; box++)
            for (uint32_t a = boxes[box].first; a; a = molecules[a - 1].next) {
                energy += add_forces(&molecules[a - 1], molecules[a - 1].next);
                for (int direction = 14; direction < 27; direction++)
                    energy += add_forces(&molecules[a - 1], boxes[neighbour(box, direction)].first);
                take_turns();
            }
        add_to(&sums.energy_lock, &sums.energy, energy);
        wait_for_all();
        int mine_count = 0;
        for (int box = first; box < end; box++) {
            for (uint32_t a = boxes[box].first; a; a = molecules[a - 1].next)
                mine[mine_count++] = a - 1;
            boxes[box].first = 0;
        }
        wait_for_all();
        for (int n = 0; n < mine_count; n++) {
            if (!(SABOTAGED && step == 2 && thread == 3 && n == 0))
                motion += move(&molecules[mine[n]]);
            put(mine[n]);
        }
        add_to(&sums.motion_lock, &sums.motion, motion);
    }
    return 0;
}

// The same without boxes and threads.
static int agrees(struct molecule *again) {
    int64_t energy = 0, motion = 0;
    for (int step = 0; step < STEPS; step++) {
        for (int a = 0; a < count; a++)
            for (int b = a + 1; b < count; b++) {
                int near = interact((const int64_t(*)[3])again[a].position, (const int64_t(*)[3])again[b].position,
                                    again[a].force, again[b].force, &energy);
                again[a].pairs += near;
                again[b].pairs += near;
            }
        for (int n = 0; n < count; n++)
            motion += move(&again[n]);
    }
    int right = energy == sums.energy && motion == sums.motion;
    for (int n = 0; n < count; n++)
        right &= !memcmp(again[n].position, molecules[n].position, sizeof again[n].position) &&
                 !memcmp(again[n].velocity, molecules[n].velocity, sizeof again[n].velocity) &&
                 again[n].pairs == molecules[n].pairs;
    return right;
}

int main(int argc, char **argv) {
    int ref = is_ref(argc, argv);
    count = ref ? 512 : 64;
    across = ref ? 5 : 3;
    molecules = lines(count * sizeof *molecules);
    boxes = lines(across * across * across * sizeof *boxes);
    uint64_t state = 17;
    for (int n = 0; n < count; n++)
        for (int axis = 0; axis < 3; axis++) {
            molecules[n].position[0][axis] = next_random(&state) % (across * BOX);
            for (int atom = 1; atom < ATOMS; atom++)
                molecules[n].position[atom][axis] =
                    molecules[n].position[0][axis] + (int64_t)(next_random(&state) % 4096) - 2048;
        }
    struct molecule *again = lines(count * sizeof *again);
    memcpy(again, molecules, count * sizeof *again);
    for (int n = 0; n < count; n++)
        put(n);
    run_threads(simulate);
    uint64_t checksum = 0;
    for (int n = 0; n < count; n++)
        for (int axis = 0; axis < 3; axis++)
            checksum = with(with(checksum, molecules[n].position[0][axis]), molecules[n].velocity[2][axis]);
    return answer("water_boxes", agrees(again), checksum);
}
