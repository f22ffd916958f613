// Blocked LU factorisation without pivoting: blocks belong to threads, who meet at barriers.
//
// Counterpart: LU of SPLASH-2 with contiguous blocks of 16 x 16, scattered over the threads in two dimensions. The master
// makes the matrix; each thread first reads its blocks through (there: TouchA), and then brings them up to date in place
// whenever the pivot row and column before it are done. A finished block is read by those right of it and below.
// The train matrix is of 64, not of the paper's 16, which is one block of one thread.
//
// Expected candidates: the loads of the first reading, and of a block's own elements in the updates; the locks of the
// barriers. Not the loads of the diagonal, row and column blocks, which several threads read at once.
#include <math.h>

#include "kernel.h"

#define BLOCK 16

static int blocks;
// Stored block by block, so that no two blocks share a line.
static double (*block)[BLOCK][BLOCK];
static double touched[THREADS][LINE / sizeof(double)] ON_A_LINE;

static double (*at(int row, int column))[BLOCK] { return block[row * blocks + column]; }

static double element(int row, int column) {
    return at(row / BLOCK, column / BLOCK)[row % BLOCK][column % BLOCK];
}

static int owner(int row, int column) { return row % 2 * 2 + column % 2; }

OUT_OF_LINE static double touch(int thread) {
    double sum = 0;
    for (int i = 0; i < blocks; i++)
        for (int j = 0; j < blocks; j++)
            if (owner(i, j) == thread)
                for (int n = 0; n < BLOCK * BLOCK; n++)
                    sum += at(i, j)[n / BLOCK][n % BLOCK];
    return sum;
}

OUT_OF_LINE static void factor(double (*a)[BLOCK]) {
    for (int k = 0; k < BLOCK; k++)
        for (int i = k + 1; i < BLOCK; i++) {
            a[i][k] /= a[k][k];
            for (int j = k + 1; j < BLOCK; j++)
                a[i][j] -= a[i][k] * a[k][j];
        }
}

OUT_OF_LINE static void divide_column(double (*a)[BLOCK], double (*diagonal)[BLOCK]) {
    for (int k = 0; k < BLOCK; k++)
        for (int i = 0; i < BLOCK; i++) {
            a[i][k] /= diagonal[k][k];
            for (int j = k + 1; j < BLOCK; j++)
                a[i][j] -= a[i][k] * diagonal[k][j];
        }
}

OUT_OF_LINE static void change_row(double (*a)[BLOCK], double (*diagonal)[BLOCK]) {
    for (int k = 0; k < BLOCK; k++)
        for (int i = k + 1; i < BLOCK; i++)
            for (int j = 0; j < BLOCK; j++)
                a[i][j] -= diagonal[i][k] * a[k][j];
}

OUT_OF_LINE static void subtract_product(double (*a)[BLOCK], double (*l)[BLOCK], double (*u)[BLOCK]) {
    for (int i = 0; i < BLOCK; i++)
        for (int k = 0; k < BLOCK; k++)
            for (int j = 0; j < BLOCK; j++)
                a[i][j] -= l[i][k] * u[k][j];
}

static void *decompose(void *argument) {
    int thread = (int)(intptr_t)argument;
    touched[thread][0] = touch(thread);
    wait_for_all();
    for (int k = 0; k < blocks; k++) {
        if (owner(k, k) == thread)
            factor(at(k, k));
        wait_for_all();
        for (int n = k + 1; n < blocks; n++) {
            if (owner(n, k) == thread)
                divide_column(at(n, k), at(k, k));
            if (owner(k, n) == thread)
                change_row(at(k, n), at(k, k));
        }
        wait_for_all();
        for (int i = k + 1; i < blocks; i++)
            for (int j = k + 1; j < blocks; j++)
                if (owner(i, j) == thread && !(SABOTAGED && i == 2 && j == 3 && k == 1))
                    subtract_product(at(i, j), at(i, k), at(k, j));
        wait_for_all();
    }
    return 0;
}

int main(int argc, char **argv) {
    blocks = is_ref(argc, argv) ? 8 : 4;
    int size = blocks * BLOCK;
    block = lines(sizeof *block * blocks * blocks);
    double *before = lines(sizeof *before * size * size), sum = 0;
    uint64_t state = 7;
    for (int i = 0; i < size; i++)
        for (int j = 0; j < size; j++) {
            double value = next_fraction(&state) + (i == j) * size;
            before[i * size + j] = at(i / BLOCK, j / BLOCK)[i % BLOCK][j % BLOCK] = value;
            sum += value;
        }
    run_threads(decompose);
    // L times U is the matrix again, and each thread had read its part.
    for (int thread = 0; thread < THREADS; thread++)
        sum -= touched[thread][0];
    double worst = fabs(sum);
    uint64_t checksum = 0;
    for (int i = 0; i < size; i++)
        for (int j = 0; j < size; j++) {
            double product = 0;
            for (int k = 0; k <= i && k <= j; k++)
                product += (k == i ? 1 : element(i, k)) * element(k, j);
            worst = fmax(worst, fabs(product - before[i * size + j]));
            checksum = with(checksum, bits_of(element(i, j)));
        }
    return answer("blocked_lu", worst < 1e-8, checksum);
}
