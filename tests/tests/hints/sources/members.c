/* Loads of members, in each form that a compiler gives another column. Checks itself. */
struct inner { long x, y; };
struct node {
	long pad, count;
	struct node *next;
	struct inner at;
	volatile long seen;
};

__attribute__((noinline)) static void bump(struct node *n)
{
	n->count++; /* want: n->count */
}

__attribute__((noinline)) static void add(struct node *n, long k)
{
	n->count += k; /* want: n->count */
}

__attribute__((noinline)) static long triple(struct node *n)
{
	long c = n->count; /* want: n->count */
	n->count = c * 3;
	return c;
}

__attribute__((noinline)) static long flip(struct node *n)
{
	long c = n->next->count; /* want: n->next->count or n->next */
	n->next->count = c ^ 5; /* may: n->next */
	return c;
}

__attribute__((noinline)) static void nested(struct node *n)
{
	n->at.y = n->at.y * 7; /* want: n->at.y */
}

__attribute__((noinline)) static void seen(struct node *n)
{
	n->seen = n->seen + 1; /* want: n->seen */
}

__attribute__((noinline)) static void limit(struct node *n)
{
	if (n->count > 30) { /* want: n->count */
		n->count = 30;
	}
}

int main(void)
{
	struct node b = {0, 8, 0, {0, 3}, 4}, a = {0, 1, &b, {1, 2}, 3};
	bump(&a);
	add(&a, 5);
	if (triple(&a) != 7)
		return 1;
	if (flip(&a) != 8)
		return 2;
	nested(&a);
	seen(&a);
	if (a.count != 21)
		return 3;
	add(&a, 20);
	limit(&a);
	return a.count == 30 && b.count == 13 && a.at.y == 14 && a.seen == 4 ? 0 : 4;
}
