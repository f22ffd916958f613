// Loads that must not get a statement before them, in C++.
struct Bits { unsigned a : 3; unsigned b : 5; long c; };
static long global = 3;
static long other = global + 1;

struct Holder {
    Bits bits;
    long twice = global * 2;
    explicit Holder(const Bits &b) : bits{b.a, b.b, b.c} {}
};

__attribute__((noinline)) static long use(Bits &b, int i)
{
    b.a++;
    b.b += 2;
    if (i) b.c++;
    return i || b.c;
}

int main()
{
    Bits b{1, 2, 3};
    Holder h(b);
    return use(b, 1) + h.twice + other > 0 ? 0 : 1;
}
