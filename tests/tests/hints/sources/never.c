/* Loads that must not get a statement before them: each would not compile, or mean something else. */
struct node { long count; unsigned bits : 3, more : 4; struct node *next; };
#define COUNT(n) ((n)->count)
#define it n->next
long start;

__attribute__((noinline)) static struct node *next(struct node *n) { return n->next; }

__attribute__((noinline)) static long all(struct node *n, int i, long *p)
{
    if (i)
        n->count++;
    else
        n->count--;
    while (n->count > 30)
        n->count /= 2;
    for (int k = 0; k < n->count; k++)
        i += k;
    n->bits++;
    n->more += n->bits;
    COUNT(n)++;
    it->count++;
    next(n)->count++;
    i += next(n) && n->next->count;
    i += i ? n->next->count : 0;
    if (i) { n->count++; }
    switch (i) {
    case 1: n->count++; break;
    default: n->count--;
    }
    *p++ += 1; p[i++ & 0] += 2;
    do
        n->count++;
    while (n->count < 3);
    long x = 1, *q = p; x += *q;
    return x
        + n->count;
}

int main(void)
{
    struct node b = {1, 2, 3, 0}, a = {4, 5, 6, &b};
    long v[2] = {0, 0};
    return all(&a, 0, v) > 0 ? 0 : 1;
}
