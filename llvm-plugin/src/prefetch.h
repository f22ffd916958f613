// The prefetch itself: where it goes, and how it is written.
#pragma once

#include "candidates.h"

#include <llvm/Analysis/LoopInfo.h>
#include <llvm/IR/Dominators.h>
#if __has_include(<llvm/TargetParser/Triple.h>)
#include <llvm/TargetParser/Triple.h>
#else
#include <llvm/ADT/Triple.h>
#endif

namespace cohtrace {

// The mnemonic for a processor; null where it has none that is known here.
const char *mnemonic(const llvm::Triple &triple);

enum class Placed {
    InFront,
    BeforeTheLoop,
    Already,   // A run of this pass before placed it.
    Repeated,  // In a loop most executions hit: a prefetch for each would cost more than it gains.
    NoSpace,   // An address that is no plain pointer.
};

// Puts a prefetch of what the load reads in front of it, or before the loop around it.
Placed place_prefetch(const Load &hint, llvm::LoadInst &load, const llvm::LoopInfo &loops,
                      const llvm::DominatorTree &dominators, const llvm::Triple &triple);

} // namespace cohtrace
