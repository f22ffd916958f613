/* Elements of variables, in blocks of all kinds. Checks itself. */
#define LANES 8
#define FIRST 2
static long lanes[LANES], total;

__attribute__((noinline)) static void count(int i)
{
    lanes[i] = lanes[i] * 11 + 1; /* want: lanes[i] */
}

__attribute__((noinline)) static void first(void)
{
    lanes[FIRST] += 2; /* want: lanes[FIRST] */
}

__attribute__((noinline)) static void both(int i, int up)
{
    if (up) {
        lanes[i] += 5; /* want: lanes[i] */
    } else {
        lanes[i] -= 5; /* want: lanes[i] */
    }
    for (int k = 0; k < 3; k++) {
        ++lanes[i]; /* want: lanes[i] */
        total += k;
    }
}

int main(void)
{
    count(1);
    first();
    both(3, 1);
    both(4, 0);
    return lanes[1] == 1 && lanes[2] == 2 && lanes[3] == 8 && lanes[4] == -2 && total == 6 ? 0 : 1;
}
