// Members by name and by this, references, lambdas. Checks itself.
struct Stats {
    long hits = 0;
    volatile long misses = 0;
    Stats *next = nullptr;

    __attribute__((noinline)) void hit(long k)
    {
        this->hits += k; // want: this->hits
    }

    __attribute__((noinline)) void miss()
    {
        this->misses = this->misses + 1; // want: this->misses
    }
};

namespace shared {
static long lanes[4];
}

__attribute__((noinline)) static void both(Stats &s)
{
    s.hits *= 2; // want: s.hits
}

__attribute__((noinline)) static long run(Stats &s, int i)
{
    auto add = [&](long k) {
        s.hits += k; // want: s.hits
    };
    add(3);
    shared::lanes[i] += 4; // want: shared::lanes[i]
    return s.hits; // may: s.hits
}

int main()
{
    Stats s;
    s.hit(2);
    s.miss();
    both(s);
    return run(s, 1) == 7 && shared::lanes[1] == 4 && s.misses == 1 ? 0 : 1;
}
