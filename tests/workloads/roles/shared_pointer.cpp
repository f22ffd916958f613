// A pointer with a count of its references, as the C++ library has it: copied and dropped by both threads.
//
// ROLES: {"": "reference-count"}
// NEVER: lock ticket-lock counter

#include "../stage/stage.h"
#include <memory>

static std::shared_ptr<long> value;

static void *copy(void *) {
    uintptr_t n = 0;
    while (running()) {
        std::shared_ptr<long> own = value;
        n += static_cast<uintptr_t>(*own);
    }
    return reinterpret_cast<void *>(n);
}

int main(int argc, char **argv) {
    value = std::make_shared<long>(1);
    pthread_t first = start("first", copy, nullptr);
    pthread_t second = start("second", copy, nullptr);
    run_for_argument(argc, argv);
    bool right = finish(first) > 0 && finish(second) > 0;
    return verdict(right && value.use_count() == 1, true);
}
