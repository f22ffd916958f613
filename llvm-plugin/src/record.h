// What was done with a module, for people and for `cohtrace as --summary`.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace cohtrace {

struct Record {
    std::string unit;      // Source file.
    std::string unchanged; // Why nothing was looked for, where that was not for want of hints.
    std::vector<std::pair<std::string, std::string>> placed;  // Id of the hint, and where.
    std::vector<std::pair<std::string, std::string>> refused; // Id of the hint, and why not: `place` and reason.
    std::vector<std::pair<std::string, std::string>> left_out; // The same of loads that are better without.

    // Adds a line to the file that COHTRACE_HINTS_LOG names, else says it on standard error.
    void write() const;
};

} // namespace cohtrace
