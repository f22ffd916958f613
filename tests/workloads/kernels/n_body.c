// Bodies that attract each other, by a tree: all threads put bodies into one tree, a lock at each cell; centres of mass are
// summed from below; each thread then computes the forces on its stretch of the tree's bodies, and moves them.
//
// Counterpart: BARNES of SPLASH-2. A body learns its cell when it is put there, or when another body's thread pushes it
// down; cells come from each thread's own array and are stored anew in every step; forces are
// computed from cells and bodies that everybody reads; where the tree is cut into stretches moves from step to step, and
// with it which thread loads, changes and stores a body.
//
// Expected candidates: the loads of a cell's lock and child where a body finds its place, of the position of a body that is
// pushed down, of a body where it is moved, the locks of the barriers. Not the loads of the walk through the tree, which are nearly all there are.
#include <math.h>

#include "kernel.h"

#define CHILDREN 8
#define DEEPEST 48
#define STEPS 3
// A cell is far when its size is less than this share of its distance.
#define OPENING 0.8
#define SOFTENING 1e-3
#define TIME_STEP 1e-4
#define IS_BODY 1
#define SAMPLES 64

struct body {
    double mass;
    double position[3];
    struct cell *parent;
    uint32_t level;
    uint32_t moves;
    double velocity[3];
    double force[3];
    double potential;
} ON_A_LINE;

struct cell {
    lock_word lock;
    uint32_t bodies;
    double mass;
    double position[3];
    uintptr_t children[CHILDREN]; // A cell, or a body and IS_BODY.
    uint32_t is_summed;
};

static struct body *bodies;
static uint32_t body_count, cell_room;
static struct cell *cells[THREADS], *root;
static struct own {
    uint32_t cells;
} ON_A_LINE own[THREADS];
static int whole = 1;

static struct body *as_body(uintptr_t child) { return (struct body *)(child & ~(uintptr_t)IS_BODY); }
static struct cell *as_cell(uintptr_t child) { return (struct cell *)child; }

OUT_OF_LINE static struct cell *new_cell(int thread) {
    if (own[thread].cells == cell_room)
        exit(2);
    struct cell *cell = &cells[thread][own[thread].cells++];
    cell->lock = 0;
    cell->is_summed = 0;
    memset(cell->children, 0, sizeof cell->children);
    return cell;
}

// Which part of the cell around `centre` the body is in; moves `centre` to the middle of that part.
static int part_of(const struct body *body, double centre[3], double half) {
    int part = 0;
    for (int axis = 0; axis < 3; axis++) {
        int above = body->position[axis] >= centre[axis];
        part |= above << axis;
        centre[axis] += above ? half / 2 : -half / 2;
    }
    return part;
}

OUT_OF_LINE static void insert(struct body *body, int thread) {
    struct cell *cell = root;
    double centre[3] = {0.5, 0.5, 0.5}, half = 1;
    for (uint32_t level = 0; level < DEEPEST; level++) {
        uintptr_t *place = &cell->children[part_of(body, centre, half)];
        half /= 2;
        uintptr_t child = __atomic_load_n(place, __ATOMIC_ACQUIRE);
        if (!child || child & IS_BODY) {
            take(&cell->lock);
            child = *place;
            if (!child) {
                body->parent = cell;
                body->level = level;
                __atomic_store_n(place, (uintptr_t)body | IS_BODY, __ATOMIC_RELEASE);
            } else if (child & IS_BODY) {
                // The body that is there moves into a new cell, whom this one follows.
                struct cell *below = new_cell(thread);
                double of_below[3] = {centre[0], centre[1], centre[2]};
                below->children[part_of(as_body(child), of_below, half)] = child;
                as_body(child)->parent = below;
                as_body(child)->level = level + 1;
                child = (uintptr_t)below;
                __atomic_store_n(place, child, __ATOMIC_RELEASE);
            }
            release(&cell->lock);
            if (!child)
                return;
        }
        cell = as_cell(child);
    }
    exit(2);
}

// Sums a thread's cells, the newest first: those below a cell are newer than it, whosever they are.
OUT_OF_LINE static void sum_cells(int thread) {
    for (uint32_t n = own[thread].cells; n-- > 0;) {
        struct cell *cell = &cells[thread][n];
        double mass = 0, moment[3] = {0};
        uint32_t count = 0;
        for (int part = 0; part < CHILDREN; part++) {
            uintptr_t child = cell->children[part];
            if (!child)
                continue;
            if (!(child & IS_BODY))
                while (!__atomic_load_n(&as_cell(child)->is_summed, __ATOMIC_ACQUIRE))
                    sched_yield();
            double more = child & IS_BODY ? as_body(child)->mass : as_cell(child)->mass;
            const double *at = child & IS_BODY ? as_body(child)->position : as_cell(child)->position;
            if (!(SABOTAGED && cell == root && part == 0))
                mass += more;
            count += child & IS_BODY ? 1 : as_cell(child)->bodies;
            for (int axis = 0; axis < 3; axis++)
                moment[axis] += more * at[axis];
        }
        for (int axis = 0; axis < 3; axis++)
            cell->position[axis] = moment[axis] / mass;
        cell->mass = mass;
        cell->bodies = count;
        __atomic_store_n(&cell->is_summed, 1, __ATOMIC_RELEASE);
    }
}

static double attract(double force[3], const double *at, double mass, const double *to) {
    double apart[3], square = SOFTENING;
    for (int axis = 0; axis < 3; axis++) {
        apart[axis] = to[axis] - at[axis];
        square += apart[axis] * apart[axis];
    }
    double pull = mass / (square * sqrt(square));
    for (int axis = 0; axis < 3; axis++)
        force[axis] += pull * apart[axis];
    return mass / sqrt(square);
}

// Adds to the force; returns the potential.
OUT_OF_LINE static double walk(double force[3], const struct body *body, const struct cell *cell, double size) {
    double potential = 0;
    for (int part = 0; part < CHILDREN; part++) {
        uintptr_t child = cell->children[part];
        if (!child || as_body(child) == body)
            continue;
        if (child & IS_BODY) {
            potential += attract(force, body->position, as_body(child)->mass, as_body(child)->position);
            continue;
        }
        double square = 0;
        for (int axis = 0; axis < 3; axis++)
            square += (as_cell(child)->position[axis] - body->position[axis]) *
                      (as_cell(child)->position[axis] - body->position[axis]);
        if (size / 2 * (size / 2) < OPENING * OPENING * square)
            potential += attract(force, body->position, as_cell(child)->mass, as_cell(child)->position);
        else
            potential += walk(force, body, as_cell(child), size / 2);
    }
    return potential;
}

// The bodies from number `first` on, up to `end`, in the order of the tree; `number` is that of the cell's first.
OUT_OF_LINE static void stretch(const struct cell *cell, uint32_t number, uint32_t first, uint32_t end,
                                struct body **found) {
    for (int part = 0; part < CHILDREN && number < end; part++) {
        uintptr_t child = cell->children[part];
        if (!child)
            continue;
        uint32_t count = child & IS_BODY ? 1 : as_cell(child)->bodies;
        if (number + count > first) {
            if (child & IS_BODY)
                found[number - first] = as_body(child);
            else
                stretch(as_cell(child), number, first, end, found);
        }
        number += count;
    }
}

OUT_OF_LINE static void compute_force(struct body *body) {
    double force[3] = {0};
    body->potential = walk(force, body, root, 2);
    for (int axis = 0; axis < 3; axis++)
        body->force[axis] = force[axis];
}

OUT_OF_LINE static void move(struct body *body) {
    for (int axis = 0; axis < 3; axis++) {
        body->velocity[axis] += body->force[axis] * TIME_STEP;
        body->position[axis] += body->velocity[axis] * TIME_STEP;
    }
    body->moves++;
}

static void *simulate(void *argument) {
    int thread = (int)(intptr_t)argument;
    uint32_t first = (uint64_t)body_count * thread / THREADS, end = (uint64_t)body_count * (thread + 1) / THREADS;
    struct body **mine = lines((end - first) * sizeof *mine);
    for (uint32_t n = first; n < end; n++)
        mine[n - first] = &bodies[n];
    for (int step = 0; step < STEPS; step++) {
        own[thread].cells = 0;
        if (thread == 0)
            root = new_cell(0);
        wait_for_all();
        for (uint32_t n = 0; n < end - first; n++) {
            insert(mine[n], thread);
            take_turns();
        }
        wait_for_all();
        sum_cells(thread);
        wait_for_all();
        // Masses are a power of two: their sum is exact.
        if (thread == 0)
            whole &= root->bodies == body_count && root->mass == 1;
        stretch(root, 0, first, end, mine);
        for (uint32_t n = 0; n < end - first; n++)
            compute_force(mine[n]);
        wait_for_all();
        for (uint32_t n = 0; n < end - first; n++)
            move(mine[n]);
        wait_for_all();
    }
    return 0;
}

// How far the tree's force on a body is from the sum over all bodies, before the last move.
static double error_of(const struct body *body) {
    double exact[3] = {0}, wrong = 0, all = 0;
    for (uint32_t n = 0; n < body_count; n++)
        if (&bodies[n] != body)
            attract(exact, body->position, bodies[n].mass, bodies[n].position);
    for (int axis = 0; axis < 3; axis++) {
        wrong += (exact[axis] - body->force[axis]) * (exact[axis] - body->force[axis]);
        all += exact[axis] * exact[axis];
    }
    return sqrt(wrong / all);
}

int main(int argc, char **argv) {
    body_count = is_ref(argc, argv) ? 2048 : 256;
    cell_room = body_count;
    bodies = lines(sizeof *bodies * body_count);
    for (int thread = 0; thread < THREADS; thread++)
        cells[thread] = lines(sizeof *cells[thread] * cell_room);
    uint64_t state = 13;
    for (uint32_t n = 0; n < body_count; n++) {
        bodies[n].mass = 1.0 / body_count;
        for (int axis = 0; axis < 3; axis++) {
            bodies[n].position[axis] = next_fraction(&state);
            bodies[n].velocity[axis] = next_fraction(&state) - 0.5;
        }
    }
    run_threads(simulate);
    int right = whole;
    uint64_t checksum = 0;
    for (uint32_t n = 0; n < body_count; n++) {
        right &= bodies[n].moves == STEPS && bodies[n].level < DEEPEST && bodies[n].parent;
        for (int axis = 0; axis < 3; axis++)
            checksum = with(checksum, bits_of(bodies[n].position[axis]));
    }
    // Bodies move by less than a thousandth of the whole in a step, so that the forces still tell.
    double error = 0;
    for (uint32_t n = 0; n < SAMPLES; n++)
        error += error_of(&bodies[n * (body_count / SAMPLES)]) / SAMPLES;
    right &= error < 0.05;
    return answer("n_body", right, checksum);
}
