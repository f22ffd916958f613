#include "prefetch.h"

#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InlineAsm.h>

using namespace llvm;

namespace cohtrace {
namespace {

// Executions for each request from which on a prefetch in front of the load mostly does nothing: a walk over an array of
// words has eight for each line. `cohtrace as` has the same two limits.
constexpr uint64_t REPEATED = 6;
// Up to which the prefetches cost less than a CPU gains that would wait for the store.
constexpr uint64_t PAID = 100;

struct Assembly {
    const char *mnemonic;
    const char *text;
};

// llvm.prefetch is not used: for writing it becomes prefetcht0, which asks for no ownership, unless the target's features
// include prfchw; and features that differ between functions keep them from being inlined.
Assembly assembly(const Triple &triple) {
    if (triple.isX86())
        return {"prefetchw", "prefetchw $0"};
    if (triple.isAArch64())
        return {"prfm pstl1keep", "prfm pstl1keep, $0"};
    return {nullptr, nullptr};
}

bool is_ours(const Instruction &instruction, const char *text) {
    const auto *call = dyn_cast<CallInst>(&instruction);
    const auto *code = call ? dyn_cast<InlineAsm>(call->getCalledOperand()) : nullptr;
    return code && StringRef(code->getAsmString()) == text;
}

// Link-time optimisation runs the pass twice over the same code, and several hints may mean one load.
bool is_there(const LoadInst &load, const Instruction &before, const char *text) {
    for (const User *user : load.getPointerOperand()->users()) {
        const auto *instruction = dyn_cast<Instruction>(user);
        if (instruction && is_ours(*instruction, text) && instruction->getDebugLoc() == load.getDebugLoc() &&
            instruction->getParent() == before.getParent() && instruction->comesBefore(&before))
            return true;
    }
    return false;
}

bool is_repeated(const Load &hint) { return hint.requests != 0 && hint.executions / hint.requests >= REPEATED; }

// Of one that is repeated: a CPU gains more by a request that is saved than the prefetches cost.
bool pays(const Load &hint) { return hint.awaited && hint.executions / hint.requests < PAID; }

// Where a prefetch runs whenever the loop around the load is entered; null where the address is another in each round, or
// some rounds do without the load.
Instruction *before_loop(const LoadInst &load, const Loop &loop, const DominatorTree &dominators) {
    BasicBlock *entry = loop.getLoopPreheader();
    if (!entry || !loop.isLoopInvariant(load.getPointerOperand()))
        return nullptr;
    SmallVector<BasicBlock *, 4> latches;
    loop.getLoopLatches(latches);
    for (const BasicBlock *latch : latches)
        if (!dominators.dominates(load.getParent(), latch))
            return nullptr;
    return entry->getTerminator();
}

} // namespace

const char *mnemonic(const Triple &triple) { return assembly(triple).mnemonic; }

Placed place_prefetch(const Load &hint, LoadInst &load, const LoopInfo &loops, const DominatorTree &dominators,
                      const Triple &triple) {
    const char *text = assembly(triple).text;
    if (load.getPointerAddressSpace() != 0)
        return Placed::NoSpace;
    Instruction *before = &load;
    const Loop *loop = loops.getLoopFor(load.getParent());
    if (loop && is_repeated(hint)) {
        before = before_loop(load, *loop, dominators);
        if (!before && !pays(hint))
            return Placed::Repeated;
        if (!before)
            before = &load;
    }
    if (is_there(load, *before, text))
        return Placed::Already;
    IRBuilder<> builder(before);
    Value *pointer = load.getPointerOperand();
    auto *type = FunctionType::get(builder.getVoidTy(), {pointer->getType()}, false);
    // Memory operands keep the load's addressing mode. Flags and registers stay as they are, so nothing is clobbered.
    auto *code = InlineAsm::get(type, text, "*m", /*hasSideEffects=*/true);
    CallInst *call = builder.CreateCall(type, code, {pointer});
    call->addParamAttr(0, Attribute::get(load.getContext(), Attribute::ElementType, load.getType()));
    call->setDoesNotThrow();
    // Of other memory it has no effect. That it only reads is not said: code generation without optimisation leaves out what
    // writes nothing and has no result.
    call->setOnlyAccessesArgMemory();
    call->setDebugLoc(load.getDebugLoc());
    return before == &load ? Placed::InFront : Placed::BeforeTheLoop;
}

} // namespace cohtrace
