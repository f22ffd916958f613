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

bool same_file(const SourceFile &one, const SourceFile &other) {
    auto a = sys::path::rbegin(one.path), b = sys::path::rbegin(other.path);
    auto a_end = sys::path::rend(one.path), b_end = sys::path::rend(other.path);
    if (a == a_end || b == b_end || *a != *b)
        return false;
    if (!one.md5.empty() && !other.md5.empty())
        return one.md5 == other.md5;
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
