// A Fourier transform in six steps: each thread transforms its rows, and three transposes move every element to another
// thread's rows.
//
// Counterpart: FFT of SPLASH-2. The master makes the points and the matrix of roots; each thread reads through its part of
// all arrays (there: TouchArray); a transpose takes a patch from each thread in turn, its own first, and stores it into
// the thread's own rows. Larger than the paper's -m10 and -m4, beside which the start of a process would be all there is.
//
// Expected candidates: the first reading of what the first transpose then stores into; the locks of the barriers. Not the
// loads of the transposes: their lines stay with the owner.
#include <complex.h>
#include <math.h>

#include "kernel.h"

#define SAMPLES 4

static int side; // The transform has side * side points.
// `roots[n]` is the n-th power of the first root, `turn[row][column]` that of row * column.
static double complex *points, *other, *roots, *turn;
static double touched[THREADS][LINE / sizeof(double)] ON_A_LINE;

OUT_OF_LINE static double touch(int first, int end) {
    double sum = 0;
    for (size_t n = (size_t)first * side; n < (size_t)end * side; n++)
        sum += creal(points[n]) + creal(other[n]) + creal(turn[n]) * 0;
    return sum;
}

OUT_OF_LINE static void transform_row(double complex *row) {
    for (int n = 1, m = 0; n < side; n++) {
        int bit = side >> 1;
        for (; m & bit; bit >>= 1)
            m ^= bit;
        m ^= bit;
        if (n < m) {
            double complex kept = row[n];
            row[n] = row[m];
            row[m] = kept;
        }
    }
    for (int half = 1; half < side; half *= 2)
        for (int start = 0; start < side; start += 2 * half)
            for (int n = 0; n < half; n++) {
                double complex turned = roots[(size_t)n * side / (2 * half) * side] * row[start + n + half];
                row[start + n + half] = row[start + n] - turned;
                row[start + n] += turned;
            }
}

OUT_OF_LINE static void transpose(double complex *to, const double complex *from, int thread) {
    int part = side / THREADS;
    for (int patch = 0; patch < THREADS; patch++) {
        int whose = (thread + patch) % THREADS;
        for (int column = whose * part; column < (whose + 1) * part; column++)
            for (int row = thread * part; row < (thread + 1) * part; row++)
                if (!(SABOTAGED && to == other && row == 1 && column == side - 1))
                    to[(size_t)row * side + column] = from[(size_t)column * side + row];
    }
}

OUT_OF_LINE static void turn_row(double complex *row, const double complex *by) {
    for (int column = 0; column < side; column++)
        row[column] *= by[column];
}

static void *transform(void *argument) {
    int thread = (int)(intptr_t)argument;
    int first = side * thread / THREADS, end = side * (thread + 1) / THREADS;
    touched[thread][0] = touch(first, end);
    wait_for_all();
    transpose(other, points, thread);
    wait_for_all();
    for (int row = first; row < end; row++) {
        transform_row(&other[(size_t)row * side]);
        turn_row(&other[(size_t)row * side], &turn[(size_t)row * side]);
    }
    wait_for_all();
    transpose(points, other, thread);
    wait_for_all();
    for (int row = first; row < end; row++)
        transform_row(&points[(size_t)row * side]);
    wait_for_all();
    transpose(other, points, thread);
    return 0;
}

int main(int argc, char **argv) {
    side = is_ref(argc, argv) ? 128 : 32;
    size_t count = (size_t)side * side;
    points = lines(sizeof *points * count);
    other = lines(sizeof *other * count);
    roots = lines(sizeof *roots * count);
    turn = lines(sizeof *turn * count);
    double complex before[SAMPLES];
    uint64_t state = 11;
    double sum = 0, energy = 0;
    for (size_t n = 0; n < count; n++) {
        double real = next_fraction(&state);
        points[n] = real + next_fraction(&state) * I;
        if (n % (count / SAMPLES) == 1)
            before[n / (count / SAMPLES)] = points[n];
        roots[n] = cexp(-2 * M_PI * I * (double)n / (double)count);
        sum += real;
        energy += creal(points[n] * conj(points[n]));
    }
    for (size_t n = 0; n < count; n++)
        turn[n] = roots[n / side * (n % side)];
    run_threads(transform);
    for (int thread = 0; thread < THREADS; thread++)
        sum -= touched[thread][0];
    // Every result takes part in the energy, and in each of some points transformed back.
    double worst = fabs(sum) / (double)count;
    uint64_t checksum = 0;
    for (size_t n = 0; n < count; n++) {
        energy -= creal(other[n] * conj(other[n])) / (double)count;
        checksum = with(with(checksum, bits_of(creal(other[n]))), bits_of(cimag(other[n])));
    }
    worst = fmax(worst, fabs(energy) / (double)count);
    for (size_t sample = 0; sample < SAMPLES; sample++) {
        double complex back = 0;
        for (size_t n = 0; n < count; n++)
            back += other[n] * conj(roots[n * (sample * (count / SAMPLES) + 1) % count]);
        worst = fmax(worst, cabs(back / (double)count - before[sample]));
    }
    return answer("fft_transpose", worst < 1e-10, checksum);
}
