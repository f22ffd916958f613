// The pass, at the end of the optimizer: what it finds of the hints' loads in a module gets a prefetch for ownership.
#include "prefetch.h"
#include "record.h"

#include <llvm/Analysis/LoopInfo.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/PassManager.h>
#include <llvm/Passes/PassBuilder.h>
#if __has_include(<llvm/Plugins/PassPlugin.h>)
#include <llvm/Plugins/PassPlugin.h>
#else
#include <llvm/Passes/PassPlugin.h>
#endif

#include <cstdlib>
#include <map>
#include <set>

using namespace llvm;

namespace cohtrace {
namespace {

// The hints of this process; read once, for linkers optimise many modules at a time.
struct Read {
    std::optional<Hints> hints;
    std::string why_not;
};

const Read &read_once() {
    static const Read read = [] {
        Read read;
        if (const char *path = std::getenv("COHTRACE_HINTS"))
            read.hints = read_hints(path, read.why_not);
        else
            read.why_not = "COHTRACE_HINTS does not name a hints file";
        return read;
    }();
    return read;
}

std::string text(const Place &place) {
    std::string text = place.file.path + ":" + std::to_string(place.line);
    return place.column ? text + ":" + std::to_string(place.column) : text;
}

// `list.h:7:9 from main.c:31:5`: with the call that tells it from others.
std::string text(const Load &hint) {
    const Place *at = &hint.place;
    for (const Place &call : hint.calls)
        if (is_library(at->file.path))
            at = &call;
    return at == &hint.place ? text(hint.place) : text(hint.place) + " from " + text(*at);
}

// What came of one hint in a module.
struct Outcome {
    std::map<std::string, unsigned> placed; // How, and so many copies.
    std::set<std::string> refused;
    std::string left_out; // Why it is better without, where it is.
    std::set<unsigned> other_columns;
    bool has_code = false; // Instructions of that line.
};

class Pass : public PassInfoMixin<Pass> {
  public:
    PreservedAnalyses run(Module &module, ModuleAnalysisManager &manager);
    // For code that is not optimised, too.
    static bool isRequired() { return true; }

  private:
    bool look_through(Function &function, const Hints &hints, FunctionAnalysisManager &manager);
    Record record(const Module &module, const Hints &hints);

    Places places;
    std::map<const Load *, Outcome> outcomes;
    std::set<unsigned> lines;
};

bool Pass::look_through(Function &function, const Hints &hints, FunctionAnalysisManager &manager) {
    const Triple triple(function.getParent()->getTargetTriple());
    std::vector<LoadInst *> loads;
    std::vector<std::vector<Place>> own, user;
    for (Instruction &instruction : instructions(function)) {
        const DILocation *location = instruction.getDebugLoc();
        auto *load = dyn_cast<LoadInst>(&instruction);
        const Instruction *into = load ? folding_user(*load) : nullptr;
        const DILocation *of_user = into ? into->getDebugLoc().get() : nullptr;
        if (load && location &&
            (lines.count(location->getLine()) || (of_user && lines.count(of_user->getLine())))) {
            loads.push_back(load);
            own.push_back(places.of(location));
            user.push_back(places.of(of_user));
        }
        if (!location || !lines.count(location->getLine()) || isa<PHINode>(instruction))
            continue;
        auto at = places.of(location);
        for (const Load &hint : hints.wanted) {
            Match found = match(hint, at);
            Outcome &outcome = outcomes[&hint];
            outcome.has_code |= found == Match::Same || found == Match::OtherColumn;
            if (found == Match::OtherColumn && load)
                outcome.other_columns.insert(location->getColumn());
            if (found == Match::OtherContent)
                outcome.refused.insert("the source file has changed since the hint was made");
        }
    }
    if (loads.empty())
        return false;
    const LoopInfo &loops = manager.getResult<LoopAnalysis>(function);
    const DominatorTree &dominators = manager.getResult<DominatorTreeAnalysis>(function);
    std::vector<Candidate> candidates;
    for (size_t index = 0; index < loads.size(); index++)
        candidates.push_back(candidate(*loads[index], std::move(own[index]), std::move(user[index]), loops));
    bool changed = false;
    for (const Load &hint : hints.wanted) {
        std::vector<const Candidate *> there;
        for (const Candidate &candidate : candidates)
            if (is_at(hint, candidate))
                there.push_back(&candidate);
        if (there.empty())
            continue;
        Outcome &outcome = outcomes[&hint];
        const char *name = mnemonic(triple);
        if (!name) {
            outcome.refused.insert("no prefetch for ownership is known for " + triple.getArchName().str());
            continue;
        }
        auto chosen = choose(hint, hints.left, there);
        if (chosen.empty())
            outcome.refused.insert(
                "another load there, of the stack, to be left alone, or of an instruction that stores too");
        for (const Candidate *candidate : chosen) {
            switch (place_prefetch(hint, *candidate->load, loops, dominators, triple)) {
            case Placed::InFront:
                outcome.placed[name]++;
                changed = true;
                break;
            case Placed::BeforeTheLoop:
                outcome.placed[std::string(name) + " before the loop"]++;
                changed = true;
                break;
            case Placed::Already:
                outcome.placed[std::string(name) + ", there already"]++;
                break;
            case Placed::Repeated:
                outcome.left_out = "it is in a loop, and " + std::to_string(hint.executions - hint.requests) +
                                   " of its " + std::to_string(hint.executions) +
                                   " executions find their line here: a prefetch for each costs more than it gains";
                break;
            case Placed::NoSpace:
                outcome.refused.insert("it reads by a segment register");
                break;
            }
        }
    }
    return changed;
}

Record Pass::record(const Module &module, const Hints &hints) {
    Record record;
    record.unit = module.getSourceFileName();
    std::vector<SourceFile> units;
    for (const DICompileUnit *unit : module.debug_compile_units())
        units.push_back(places.file(unit->getFile()));
    for (const Load &hint : hints.wanted) {
        Outcome &outcome = outcomes[&hint];
        for (const auto &[how, copies] : outcome.placed)
            record.placed.push_back(
                {hint.id, text(hint) + ": " + how + (copies > 1 ? ", " + std::to_string(copies) + " copies" : "")});
        if (!outcome.placed.empty())
            continue;
        if (!outcome.left_out.empty()) {
            record.left_out.push_back({hint.id, text(hint) + ": " + outcome.left_out});
        } else if (outcome.refused.empty() && !outcome.other_columns.empty()) {
            std::string columns;
            for (unsigned column : outcome.other_columns)
                columns += (columns.empty() ? "" : ", ") + std::to_string(column);
            outcome.refused.insert("loads in column " + columns + " only; another compiler, or the source has changed");
        } else if (outcome.refused.empty() && outcome.has_code) {
            outcome.refused.insert("no load at that line");
        } else if (outcome.refused.empty()) {
            // Of headers and of crates, another unit may have it.
            for (const SourceFile &unit : units)
                if (same_file(unit, hint.place.file))
                    outcome.refused.insert("no code at that line; the source may have changed since");
        }
        for (const std::string &why : outcome.refused)
            record.refused.push_back({hint.id, text(hint) + ": " + why});
    }
    return record;
}

PreservedAnalyses Pass::run(Module &module, ModuleAnalysisManager &modules) {
    const Read &read = read_once();
    if (!read.hints) {
        Record record;
        record.unit = module.getSourceFileName();
        record.unchanged = read.why_not;
        record.write();
        return PreservedAnalyses::all();
    }
    for (const Load &hint : read.hints->wanted)
        lines.insert(hint.place.line);
    auto &manager = modules.getResult<FunctionAnalysisManagerModuleProxy>(module).getManager();
    bool changed = false;
    for (Function &function : module)
        // What another module defines is here to be inlined only.
        if (!function.isDeclaration() && !function.hasAvailableExternallyLinkage())
            changed |= look_through(function, *read.hints, manager);
    record(module, *read.hints).write();
    return changed ? PreservedAnalyses::none() : PreservedAnalyses::all();
}

void register_passes(PassBuilder &builder) {
    auto add = [](ModulePassManager &passes, auto &&...) { passes.addPass(Pass()); };
    builder.registerOptimizerLastEPCallback(add);
#if LLVM_VERSION_MAJOR >= 15
    builder.registerFullLinkTimeOptimizationLastEPCallback(add);
#endif
    builder.registerPipelineParsingCallback(
        [](StringRef name, ModulePassManager &passes, ArrayRef<PassBuilder::PipelineElement>) {
            if (name != "cohtrace-hints")
                return false;
            passes.addPass(Pass());
            return true;
        });
}

} // namespace
} // namespace cohtrace

extern "C" __attribute__((visibility("default"))) PassPluginLibraryInfo llvmGetPassPluginInfo() {
    return {LLVM_PLUGIN_API_VERSION, "cohtrace hints", "1", cohtrace::register_passes};
}
