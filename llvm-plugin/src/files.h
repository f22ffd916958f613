// Whether two paths of debug information mean one source file. `cohtrace as` goes by these rules too, and looks at the other
// files of the build and of the machine besides.
#pragma once

#include <string>

namespace cohtrace {

struct SourceFile {
    std::string path;
    std::string md5; // 32 lower-case hexadecimal digits, or empty where nobody says.
};

// A differing digest is another file, the same digest and base name the same; without digests, paths that end alike in
// the base name and a directory, or where one of them is a base name only.
bool same_file(const SourceFile &one, const SourceFile &other);

// Code of a standard library, whose lines belong to everybody who calls it.
bool is_library(const std::string &path);

// Without `.` and `..`.
std::string normal(const std::string &path);

} // namespace cohtrace
