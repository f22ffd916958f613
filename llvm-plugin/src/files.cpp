#include "files.h"

#include <llvm/ADT/SmallString.h>
#include <llvm/ADT/StringRef.h>
#include <llvm/Support/Path.h>

using namespace llvm;

namespace cohtrace {

std::string normal(const std::string &path) {
    SmallString<256> text(path);
    sys::path::remove_dots(text, true, sys::path::Style::posix);
    return std::string(text);
}

namespace {

// Assemblers disagree on the order of a digest's bytes in a line table, by which hints may have it the other way round.
bool same_digest(const std::string &one, const std::string &other) {
    if (one == other)
        return true;
    std::string turned;
    for (size_t at = other.size(); at >= 2; at -= 2)
        turned += other.substr(at - 2, 2);
    return one == turned;
}

} // namespace

bool same_file(const SourceFile &one, const SourceFile &other) {
    auto a = sys::path::rbegin(one.path), b = sys::path::rbegin(other.path);
    auto a_end = sys::path::rend(one.path), b_end = sys::path::rend(other.path);
    if (a == a_end || b == b_end || *a != *b)
        return false;
    if (!one.md5.empty() && !other.md5.empty())
        return same_digest(one.md5, other.md5);
    ++a, ++b;
    return a == a_end || b == b_end || *a == *b;
}

bool is_library(const std::string &path) {
    StringRef text = path;
    for (StringRef root : {"/rustc/", "/usr/include/", "/usr/lib/"})
        if (text.substr(0, root.size()) == root)
            return true;
    return text.contains("/lib/rustlib/src/rust/") || text.contains("/include/c++/");
}

} // namespace cohtrace
