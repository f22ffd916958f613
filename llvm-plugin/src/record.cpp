#include "record.h"

#include <llvm/ADT/SmallString.h>
#include <llvm/Support/FileSystem.h>
#include <llvm/Support/JSON.h>
#include <llvm/Support/raw_ostream.h>

#include <cstdlib>

using namespace llvm;

namespace cohtrace {
namespace {

json::Array pairs(const std::vector<std::pair<std::string, std::string>> &some) {
    json::Array all;
    for (const auto &[id, text] : some)
        all.push_back(json::Array{id, text});
    return all;
}

std::string as_json(const Record &record) {
    SmallString<128> directory;
    sys::fs::current_path(directory);
    json::Object object{{"directory", directory.str()}, {"unit", record.unit},       {"output", nullptr},
                        {"unchanged", nullptr},         {"placed", pairs(record.placed)}, {"refused", pairs(record.refused)},
                        {"left_out", pairs(record.left_out)}};
    if (!record.unchanged.empty())
        object["unchanged"] = record.unchanged;
    std::string line;
    raw_string_ostream(line) << json::Value(std::move(object)) << "\n";
    return line;
}

std::string as_text(const Record &record) {
    std::string text;
    raw_string_ostream out(text);
    if (!record.unchanged.empty())
        out << "cohtrace: compiled without hints: " << record.unchanged << "\n";
    for (const auto &[id, where] : record.placed)
        out << "cohtrace: " << where << " (" << id << ")\n";
    for (const auto *some : {&record.refused, &record.left_out})
        for (const auto &[id, why] : *some)
            out << "cohtrace: no prefetch: " << why << " (" << id << ")\n";
    return out.str();
}

} // namespace

void Record::write() const {
    if (unchanged.empty() && placed.empty() && refused.empty() && left_out.empty())
        return;
    if (const char *path = std::getenv("COHTRACE_HINTS_LOG")) {
        // One write of the whole line: units of a build are compiled at the same time.
        std::error_code error;
        raw_fd_ostream log(path, error, sys::fs::OF_Append);
        if (!error) {
            std::string line = as_json(*this);
            log.SetBufferSize(line.size() + 1);
            log << line;
            log.close();
            if (!log.has_error())
                return;
            log.clear_error();
        }
    }
    std::string text = as_text(*this);
    // Unbuffered, so also in one write.
    errs() << text;
}

} // namespace cohtrace
