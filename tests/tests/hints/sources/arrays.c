/* Loads of elements and through pointers. Checks itself. */
struct cell { long lock, value; };
struct row { long a[4]; long *p; struct cell cells[4]; };

__attribute__((noinline)) static void scale(struct row *r, int i)
{
    r->a[i] = r->a[i] * 7; /* want: r->a[i] */
}

__attribute__((noinline)) static void deref(long *p)
{
    *p = *p * 9; /* want: *p */
}

__attribute__((noinline)) static void cell(struct row *r, int i)
{
    r->cells[i + 1].value += 4; /* want: r->cells[i+1].value */
}

__attribute__((noinline)) static long local(struct cell cells[], int i)
{
    long v = cells[i].value; /* want: cells[i].value */
    cells[i].value = v + 2;
    return v;
}

__attribute__((noinline)) static void grid(long g[][4], int i, int j)
{
    g[i][j] ^= 3; /* want: g[i][j] */
}

int main(void)
{
    struct row r = {{1, 2, 3, 4}, 0, {{0, 0}, {0, 1}, {0, 2}, {0, 3}}};
    long g[2][4] = {{0}};
    scale(&r, 1);
    deref(&r.a[2]);
    cell(&r, 1);
    grid(g, 1, 2);
    if (local(r.cells, 2) != 6)
        return 1;
    return r.a[1] == 14 && r.a[2] == 27 && r.cells[2].value == 8 && g[1][2] == 3 ? 0 : 2;
}
