// Sparse factorisation L D L^T by tasks: a column that has had all its changes is put into its owner's queue; the owner
// finishes it and subtracts its multiples from the columns right of it, each under that column's lock.
//
// Counterpart: CHOLESKY of SPLASH-2: queues of tasks with locks, and columns that one thread after another changes. The
// matrix is that of a grid of points in an order that cuts the grid in halves again and again, as the inputs tk23 and tk29
// are ordered; columns stand for their supernodes. Arithmetic is modulo a prime: exact, whatever the order of the changes.
//
// Expected candidates: the loads of a changed column's elements, of its count of outstanding changes, of queues' heads and
// of the locks: all are read, then stored, by one thread after another. Not the loads of the column that changes others.
#include "kernel.h"

#define PRIME 2147483647u

// What does not change while threads work.
struct column {
    uint32_t count;
    uint32_t owner;
    uint32_t *rows;     // Ascending, the diagonal first.
    uint32_t *elements; // Of these rows.
};

struct state {
    lock_word lock;
    uint32_t outstanding; // Changes that are still to come.
    uint32_t next;        // In the queue, or in the list of a parent's children.
};

static int side;
static uint32_t size;
static struct column *columns;
static struct state *states;
static struct queue {
    lock_word lock;
    uint32_t head; // Number of a column and 1; 0 is none.
} ON_A_LINE queues[THREADS];

static uint32_t product(uint32_t a, uint32_t b) { return (uint64_t)a * b % PRIME; }
static uint32_t difference(uint32_t a, uint32_t b) { return a >= b ? a - b : a + PRIME - b; }

static uint32_t inverse(uint32_t a) {
    uint32_t result = 1;
    for (uint32_t exponent = PRIME - 2; exponent; exponent >>= 1, a = product(a, a))
        if (exponent & 1)
            result = product(result, a);
    return result;
}

OUT_OF_LINE static void put(uint32_t number) {
    struct queue *queue = &queues[columns[number].owner];
    take(&queue->lock);
    states[number].next = queue->head;
    __atomic_store_n(&queue->head, number + 1, __ATOMIC_RELAXED);
    release(&queue->lock);
}

// 0 where there is none.
OUT_OF_LINE static uint32_t get(struct queue *queue) {
    if (!__atomic_load_n(&queue->head, __ATOMIC_RELAXED))
        return 0;
    take(&queue->lock);
    uint32_t found = queue->head;
    if (found)
        __atomic_store_n(&queue->head, states[found - 1].next, __ATOMIC_RELAXED);
    release(&queue->lock);
    return found;
}

// Divides by the pivot, which stays as the diagonal element.
OUT_OF_LINE static void finish(struct column *column) {
    uint32_t by = inverse(column->elements[0]);
    for (uint32_t n = 1; n < column->count; n++)
        column->elements[n] = product(column->elements[n], by);
}

// Subtracts from the column of the source's n-th row.
OUT_OF_LINE static void change(const struct column *source, uint32_t n) {
    struct column *target = &columns[source->rows[n]];
    uint32_t factor = product(source->elements[n], source->elements[0]);
    struct state *state = &states[source->rows[n]];
    take(&state->lock);
    for (uint32_t from = n, to = 0; from < source->count; from++, to++) {
        while (target->rows[to] != source->rows[from])
            to++;
        target->elements[to] = difference(target->elements[to], product(factor, source->elements[from]));
    }
    uint32_t outstanding = --state->outstanding;
    release(&state->lock);
    if (outstanding == 0)
        put(source->rows[n]);
}

static void *work(void *argument) {
    int thread = (int)(intptr_t)argument;
    wait_for_all();
    // A thread is done with its last own column.
    for (uint32_t finished = 0; finished < (size - thread + THREADS - 1) / THREADS;) {
        uint32_t found = get(&queues[thread]);
        if (!found) {
            sched_yield();
            continue;
        }
        struct column *column = &columns[found - 1];
        finish(column);
        for (uint32_t n = 1; n < column->count; n++) {
            if (SABOTAGED && found == size / 2 && n == 1) {
                __atomic_fetch_sub(&states[column->rows[n]].outstanding, 1, __ATOMIC_RELAXED);
                if (states[column->rows[n]].outstanding == 0)
                    put(column->rows[n]);
            } else {
                change(column, n);
            }
        }
        finished++;
        take_turns();
    }
    return 0;
}

// Numbers the points of a part of the grid, the line that cuts it last.
static void order(int left, int top, int right, int bottom, uint32_t *place, uint32_t *next) {
    int width = right - left, height = bottom - top;
    if (width <= 0 || height <= 0)
        return;
    int column = width >= height ? left + width / 2 : -1, row = column < 0 ? top + height / 2 : -1;
    if (column >= 0) {
        order(left, top, column, bottom, place, next);
        order(column + 1, top, right, bottom, place, next);
    } else {
        order(left, top, right, row, place, next);
        order(left, row + 1, right, bottom, place, next);
    }
    for (int x = column < 0 ? left : column; x < (column < 0 ? right : column + 1); x++)
        for (int y = row < 0 ? top : row; y < (row < 0 ? bottom : row + 1); y++)
            place[y * side + x] = (*next)++;
}

// The element of the matrix; 0 where points are not neighbours.
static uint32_t element(uint32_t row, uint32_t column, const uint32_t *x, const uint32_t *y) {
    uint32_t apart = abs((int)x[row] - (int)x[column]) + abs((int)y[row] - (int)y[column]);
    if (apart > 1)
        return 0;
    uint64_t state = (uint64_t)(row < column ? column : row) * size + (row < column ? row : column);
    return 1 + next_random(&state) % (PRIME - 1);
}

static int ascending(const void *a, const void *b) {
    uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;
    return (left > right) - (left < right);
}

#define ROOM (1 << 16)

// The rows of each column: of its neighbours that come later, and of what earlier columns fill in.
static void make_matrix(const uint32_t *x, const uint32_t *y) {
    uint32_t *first_child = lines(size * sizeof *first_child), *marked_by = lines(size * sizeof *marked_by);
    uint32_t *found = lines(size * sizeof *found), used = 0;
    // Columns meet on lines, as they do there; what is only read is kept apart from what changes.
    uint32_t *rows = lines(ROOM * sizeof *rows), *elements = lines(ROOM * sizeof *elements);
    for (uint32_t n = 0; n < size; n++) {
        struct column *column = &columns[n];
        uint32_t count = 0;
        for (uint32_t row = n; row < size; row++)
            if (element(row, n, x, y)) {
                marked_by[row] = n + 1;
                found[count++] = row;
            }
        for (uint32_t child = first_child[n]; child; child = states[child - 1].next)
            for (uint32_t m = 1; m < columns[child - 1].count; m++) {
                uint32_t row = columns[child - 1].rows[m];
                if (marked_by[row] != n + 1)
                    found[count++] = row;
                marked_by[row] = n + 1;
            }
        qsort(found, count, sizeof *found, ascending);
        column->owner = n % THREADS;
        column->count = count;
        if (used + count > ROOM)
            exit(2);
        column->rows = rows + used;
        column->elements = elements + used;
        used += count;
        for (uint32_t m = 0; m < count; m++) {
            column->rows[m] = found[m];
            column->elements[m] = element(found[m], n, x, y);
            states[found[m]].outstanding += m > 0;
        }
        if (count > 1) {
            states[n].next = first_child[found[1]];
            first_child[found[1]] = n + 1;
        }
    }
}

// Whether the factors and the matrix, each times the same vector, give the same; a wrong element is missed once in 2^31.
static int is_right(const uint32_t *x, const uint32_t *y) {
    uint32_t *vector = lines(size * sizeof *vector), *sums = lines(size * sizeof *sums);
    uint64_t state = 23;
    for (uint32_t n = 0; n < size; n++)
        vector[n] = next_random(&state) % PRIME;
    for (uint32_t n = 0; n < size; n++) {
        const struct column *column = &columns[n];
        uint32_t sum = vector[n];
        for (uint32_t m = 1; m < column->count; m++)
            sum = (sum + product(column->elements[m], vector[column->rows[m]])) % PRIME;
        sum = product(sum, column->elements[0]);
        sums[n] = (sums[n] + (uint64_t)sum) % PRIME;
        for (uint32_t m = 1; m < column->count; m++)
            sums[column->rows[m]] = (sums[column->rows[m]] + (uint64_t)product(column->elements[m], sum)) % PRIME;
    }
    for (uint32_t row = 0; row < size; row++) {
        uint32_t sum = 0;
        for (uint32_t n = 0; n < size; n++)
            sum = (sum + (uint64_t)product(element(row, n, x, y), vector[n])) % PRIME;
        if (sum != sums[row])
            return 0;
    }
    return 1;
}

int main(int argc, char **argv) {
    side = is_ref(argc, argv) ? 31 : 15;
    size = side * side;
    columns = lines(size * sizeof *columns);
    states = lines(size * sizeof *states);
    uint32_t *place = lines(size * sizeof *place), *x = lines(size * sizeof *x), *y = lines(size * sizeof *y), next = 0;
    order(0, 0, side, side, place, &next);
    for (uint32_t point = 0; point < size; point++) {
        x[place[point]] = point % side;
        y[place[point]] = point / side;
    }
    make_matrix(x, y);
    for (uint32_t n = 0; n < size; n++)
        if (states[n].outstanding == 0)
            put(n);
    run_threads(work);
    uint64_t checksum = 0;
    for (uint32_t n = 0; n < size; n++)
        for (uint32_t m = 0; m < columns[n].count; m++)
            checksum = with(checksum, columns[n].elements[m]);
    return answer("sparse_cholesky", is_right(x, y), checksum);
}
