// The loads of a module that stand where a hint's load does.
#pragma once

#include "hints.h"

#include <llvm/ADT/DenseMap.h>
#include <llvm/ADT/DenseSet.h>
#include <llvm/Analysis/LoopInfo.h>
#include <llvm/IR/DebugInfoMetadata.h>
#include <llvm/IR/Instructions.h>

#include <vector>

namespace cohtrace {

// A load instruction, and what its code says of it.
struct Candidate {
    llvm::LoadInst *load = nullptr;
    std::vector<Place> places; // Its own, then those of the calls that it was inlined by, innermost first.
    std::vector<Place> user;   // The same of the instruction that it may be folded into, whose place the machine code then has.
    std::string symbol;        // Of the global variable that it reads, where it names one.
    int64_t offset = 0;        // Of what it reads, from the variable or from a pointer that is not known.
    bool of_stack = false;     // It reads a local variable.
    bool modifies = false;     // It becomes one instruction with the store behind it.
    bool walks = false;        // Its pointer advances in a loop: code generation may choose another offset.
    LoadClass load_class = LoadClass::Integer;
};

// Places of instructions, by the debug information.
class Places {
  public:
    // Of a location and of the calls it was inlined by.
    std::vector<Place> of(const llvm::DILocation *location);
    const SourceFile &file(const llvm::DIFile *file);

  private:
    llvm::DenseMap<const llvm::DIFile *, SourceFile> files;
};

// How a location relates to a hint's.
enum class Match {
    Same,
    OtherColumn,
    OtherCaller,  // Code of a library, inlined elsewhere.
    OtherContent, // The path is the same, and the file was another when the hint was made.
    Other,
};

Match match(const Load &hint, const std::vector<Place> &places);

// The instruction that a load may be folded into: `add (%rdi), %rax`, `cmpq $0, (%rdi)`, `movslq (%rdi), %rax`.
const llvm::Instruction *folding_user(const llvm::LoadInst &load);

// What a load's code says. Its loop is the innermost around it.
Candidate candidate(llvm::LoadInst &load, std::vector<Place> places, std::vector<Place> user,
                    const llvm::LoopInfo &loops);

// Whether it is at a hint's place, itself or as a part of another instruction.
bool is_at(const Load &hint, const Candidate &candidate);

// Which of the candidates at a hint's place in one function it means; `left` are loads to leave alone.
std::vector<const Candidate *> choose(const Load &hint, const std::vector<Load> &left,
                                      const std::vector<const Candidate *> &there);

} // namespace cohtrace
