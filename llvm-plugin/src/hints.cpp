#include "hints.h"

#include <llvm/Support/JSON.h>
#include <llvm/Support/MemoryBuffer.h>

using namespace llvm;

namespace cohtrace {
namespace {

// What this reads; newer files may mean other things by the same names.
constexpr int64_t VERSION = 1;

unsigned number(const json::Object &object, StringRef name) {
    auto value = object.getInteger(name);
    return value && *value > 0 && *value <= UINT32_MAX ? static_cast<unsigned>(*value) : 0;
}

uint64_t count(const json::Object &object, StringRef name) {
    auto value = object.getInteger(name);
    return value && *value > 0 ? static_cast<uint64_t>(*value) : 0;
}

std::string text(const json::Object &object, StringRef name) {
    auto value = object.getString(name);
    return value ? value->str() : std::string();
}

// None without file or line: nothing could be found by it.
std::optional<Place> place(const json::Object &object) {
    Place place{{normal(text(object, "file")), text(object, "md5")}, number(object, "line"), number(object, "column")};
    if (place.file.path.empty() || place.line == 0)
        return std::nullopt;
    return place;
}

bool awaited(const json::Array *stores) {
    uint64_t most = 0;
    bool awaited = false;
    for (size_t index = 0; stores && index < stores->size(); index++) {
        const json::Object *store = (*stores)[index].getAsObject();
        if (!store || count(*store, "count") < most)
            continue;
        most = count(*store, "count");
        std::string kind = text(*store, "kind");
        awaited = kind == "atomic" || kind == "compare-and-swap" || kind == "fenced";
    }
    return awaited;
}

std::optional<Load> load(const json::Value &value) {
    const json::Object *hint = value.getAsObject();
    const json::Object *code = hint ? hint->getObject("load") : nullptr;
    auto at = code ? place(*code) : std::nullopt;
    if (!at)
        return std::nullopt;
    Load load;
    load.id = text(*hint, "id");
    load.place = *at;
    load.discriminator = number(*code, "discriminator");
    load.operand = Operand::parse(text(*code, "operand"));
    std::string of_class = text(*hint, "class");
    load.load_class = of_class == "integer"          ? LoadClass::Integer
                      : of_class == "floating-point" ? LoadClass::FloatingPoint
                                                     : LoadClass::Unknown;
    if (const json::Object *expected = hint->getObject("expected")) {
        load.executions = count(*expected, "executions");
        load.requests = count(*expected, "requests");
    }
    load.awaited = awaited(hint->getArray("stores"));
    if (const json::Array *calls = code->getArray("inlined_at"))
        for (const json::Value &call : *calls) {
            auto at = call.getAsObject() ? place(*call.getAsObject()) : std::nullopt;
            if (!at)
                break; // What lies further out cannot be compared either.
            load.calls.push_back(*at);
        }
    return load;
}

std::vector<Load> loads(const json::Object &file, StringRef name) {
    std::vector<Load> all;
    if (const json::Array *values = file.getArray(name))
        for (const json::Value &value : *values)
            if (auto one = load(value))
                all.push_back(std::move(*one));
    return all;
}

} // namespace

std::optional<Operand> Operand::parse(const std::string &text) {
    StringRef rest = text;
    auto open = rest.find('(');
    if (open == StringRef::npos || rest.back() != ')' || rest.contains(':'))
        return std::nullopt;
    StringRef registers = rest.slice(open + 1, rest.size() - 1);
    StringRef before = rest.take_front(open);
    Operand operand;
    StringRef base = registers.take_front(registers.find(','));
    operand.of_stack = base == "%rbp" || base == "%rsp";
    // `symbol`, `symbol+8`, `symbol-8`, `8`, `-8`, `0x8`, or nothing. Names of symbols may hold anything but a sign.
    auto is_number = [](StringRef part, int64_t &value) { return !part.getAsInteger(0, value); };
    if (before.empty() || is_number(before, operand.displacement))
        return operand;
    auto sign = before.find_last_of("+-");
    if (sign == StringRef::npos || sign == 0) {
        operand.symbol = before.str();
        return operand;
    }
    int64_t value = 0;
    if (!is_number(before.substr(sign + 1), value))
        return std::nullopt;
    operand.symbol = before.take_front(sign).str();
    operand.displacement = before[sign] == '-' ? -value : value;
    return operand;
}

std::optional<Hints> read_hints(const std::string &path, std::string &why) {
    auto buffer = MemoryBuffer::getFile(path);
    if (!buffer) {
        why = path + ": " + buffer.getError().message();
        return std::nullopt;
    }
    auto value = json::parse((*buffer)->getBuffer());
    if (!value) {
        why = path + ": not a hints file: " + toString(value.takeError());
        return std::nullopt;
    }
    const json::Object *file = value->getAsObject();
    if (!file || text(*file, "format") != "cohtrace hints") {
        why = path + ": not a hints file: its format is not \"cohtrace hints\"";
        return std::nullopt;
    }
    auto version = file->getInteger("version");
    if (!version || *version > VERSION) {
        why = path + ": hints of another version than " + std::to_string(VERSION) +
              ": use the plugin that came with the cohtrace that wrote them";
        return std::nullopt;
    }
    return Hints{loads(*file, "hints"), loads(*file, "left")};
}

} // namespace cohtrace
