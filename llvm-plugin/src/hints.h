// Load hints, as `cohtrace hints` writes them: the part of hints.json that placing needs. docs/hints.md has the fields.
#pragma once

#include "files.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace cohtrace {

// A place in the source. Line and column count from 1; 0 is unknown.
struct Place {
    SourceFile file;
    unsigned line = 0;
    unsigned column = 0;
};

// A memory operand as GNU as writes it for x86: `8(%rdi)`, `counters+8(%rip)`, `-16(%rbp)`.
struct Operand {
    std::string symbol;
    int64_t displacement = 0;
    bool of_stack = false;

    // None for what is of another form, or of another processor.
    static std::optional<Operand> parse(const std::string &text);
};

enum class LoadClass { Integer, FloatingPoint, Unknown };

// A load of hints.json: one to place a prefetch for, or one that is to be left alone.
struct Load {
    std::string id; // Empty of one to leave alone.
    Place place;
    unsigned discriminator = 0;
    std::vector<Place> calls; // Of inlined code: the calls that led here, innermost first.
    std::optional<Operand> operand;
    LoadClass load_class = LoadClass::Unknown;
    uint64_t executions = 0;
    uint64_t requests = 0;
    bool awaited = false; // The CPU waits for the store that follows it most: atomic, compare-and-swap, or fenced.
};

struct Hints {
    std::vector<Load> wanted;
    std::vector<Load> left;
};

// Reads the file; None with a reason in `why` where it cannot be used.
std::optional<Hints> read_hints(const std::string &path, std::string &why);

} // namespace cohtrace
