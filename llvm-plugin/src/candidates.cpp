#include "candidates.h"

#include <llvm/Analysis/ValueTracking.h>
#include <llvm/IR/DataLayout.h>
#include <llvm/IR/Function.h>
#include <llvm/IR/GlobalVariable.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/Operator.h>
#include <llvm/Support/Path.h>

#include <algorithm>

using namespace llvm;

namespace cohtrace {

const SourceFile &Places::file(const DIFile *file) {
    auto known = files.find(file);
    if (known != files.end())
        return known->second;
    SourceFile named;
    if (file) {
        StringRef name = file->getFilename(), directory = file->getDirectory();
        bool is_full = sys::path::is_absolute(name) || directory.empty();
        named.path = normal(is_full ? name.str() : directory.str() + "/" + name.str());
        auto checksum = file->getChecksum();
        if (checksum && checksum->Kind == DIFile::CSK_MD5)
            named.md5 = checksum->Value.lower();
    }
    return files[file] = named;
}

std::vector<Place> Places::of(const DILocation *location) {
    std::vector<Place> places;
    for (; location; location = location->getInlinedAt())
        places.push_back({file(location->getFile()), location->getLine(), location->getColumn()});
    return places;
}

Match match(const Load &hint, const std::vector<Place> &places) {
    const Place &own = places.front();
    if (own.line != hint.place.line)
        return Match::Other;
    if (!same_file(own.file, hint.place.file))
        return own.file.path == hint.place.file.path ? Match::OtherContent : Match::Other;
    // A line of a library belongs to all who call it: the calls are part of the place, out to code that is of no library.
    const Place *at = &hint.place;
    for (size_t depth = 0; is_library(at->file.path) && depth < hint.calls.size(); depth++) {
        at = &hint.calls[depth];
        if (depth + 1 >= places.size())
            return Match::OtherCaller;
        const Place &call = places[depth + 1];
        if (call.line != at->line || call.column != at->column || !same_file(call.file, at->file))
            return Match::OtherCaller;
    }
    if (is_library(at->file.path) && hint.calls.empty() && places.size() > 1)
        return Match::OtherCaller; // Nothing says whose call was meant.
    return hint.place.column == 0 || hint.place.column == own.column ? Match::Same : Match::OtherColumn;
}

// x86 adds to memory in one instruction, which asks for ownership itself.
static bool modifies(const LoadInst &load) {
    if (!load.hasOneUse() || load.isAtomic() || load.isVolatile() || !load.getType()->isIntegerTy())
        return false;
    const auto *change = dyn_cast<BinaryOperator>(*load.user_begin());
    if (!change || !change->hasOneUse() || change->getParent() != load.getParent())
        return false;
    switch (change->getOpcode()) {
    case Instruction::Add:
    case Instruction::Sub:
    case Instruction::And:
    case Instruction::Or:
    case Instruction::Xor:
    case Instruction::Shl:
    case Instruction::LShr:
    case Instruction::AShr:
        break;
    default:
        return false;
    }
    const auto *store = dyn_cast<StoreInst>(*change->user_begin());
    if (!store || store->getParent() != load.getParent() || store->getValueOperand() != change ||
        store->getPointerOperand() != load.getPointerOperand())
        return false;
    for (const Instruction *between = load.getNextNode(); between != store; between = between->getNextNode())
        if (between->mayWriteToMemory())
            return false;
    return true;
}

// Whether a value is another one in each round of the innermost loop around it, by arithmetic.
static bool advances(const Value *value, const Loop *loop) {
    for (; loop; loop = loop->getParentLoop())
        for (const Value *part = value; part;) {
            if (loop->isLoopInvariant(part))
                break;
            if (const auto *phi = dyn_cast<PHINode>(part))
                // Of a list, the next pointer is loaded; of an array, it is computed.
                return std::any_of(phi->incoming_values().begin(), phi->incoming_values().end(),
                                   [](const Use &use) { return isa<GEPOperator>(use.get()); });
            const auto *address = dyn_cast<GEPOperator>(part);
            if (!address)
                break;
            if (!address->hasAllConstantIndices())
                return true;
            part = address->getPointerOperand();
        }
    return false;
}

const Instruction *folding_user(const LoadInst &load) {
    const auto *user = load.hasOneUse() ? dyn_cast<Instruction>(*load.user_begin()) : nullptr;
    bool folds = user && user->getParent() == load.getParent() &&
                 (isa<BinaryOperator>(user) || isa<CmpInst>(user) || isa<CastInst>(user));
    return folds ? user : nullptr;
}

bool is_at(const Load &hint, const Candidate &candidate) {
    return match(hint, candidate.places) == Match::Same ||
           (!candidate.user.empty() && match(hint, candidate.user) == Match::Same);
}

Candidate candidate(LoadInst &load, std::vector<Place> places, std::vector<Place> user, const LoopInfo &loops) {
    Candidate found;
    found.load = &load;
    found.places = std::move(places);
    found.user = std::move(user);
    const Value *pointer = load.getPointerOperand();
    const DataLayout &layout = load.getModule()->getDataLayout();
    APInt offset(layout.getIndexTypeSizeInBits(pointer->getType()), 0);
    const Value *base = pointer->stripAndAccumulateConstantOffsets(layout, offset, true);
    found.offset = offset.getSExtValue();
    if (const auto *variable = dyn_cast<GlobalVariable>(base))
        found.symbol = variable->getName().str();
    found.of_stack = isa<AllocaInst>(getUnderlyingObject(pointer));
    found.modifies = modifies(load);
    found.walks = advances(base, loops.getLoopFor(load.getParent()));
    const Type *type = load.getType();
    found.load_class = type->isFPOrFPVectorTy() || type->isVectorTy() ? LoadClass::FloatingPoint : LoadClass::Integer;
    return found;
}

namespace {

// Keeps those for which the question holds, if it holds for any.
template <class Question> void prefer(std::vector<const Candidate *> &some, Question question) {
    std::vector<const Candidate *> better;
    std::copy_if(some.begin(), some.end(), std::back_inserter(better), question);
    if (!better.empty())
        some = std::move(better);
}

bool reads(const Candidate *candidate, const Load &load) {
    const auto &operand = load.operand;
    return operand && candidate->symbol == operand->symbol && candidate->offset == operand->displacement &&
           (load.load_class == LoadClass::Unknown || load.load_class == candidate->load_class);
}

} // namespace

std::vector<const Candidate *> choose(const Load &hint, const std::vector<Load> &left,
                                      const std::vector<const Candidate *> &there) {
    std::vector<const Candidate *> some;
    for (const Candidate *candidate : there) {
        bool of_stack = candidate->of_stack && !(hint.operand && hint.operand->of_stack);
        bool is_left = !reads(candidate, hint) && std::any_of(left.begin(), left.end(), [&](const Load &load) {
            return reads(candidate, load) && match(load, candidate->places) == Match::Same;
        });
        if (!of_stack && !is_left && !candidate->modifies)
            some.push_back(candidate);
    }
    prefer(some, [&](const Candidate *candidate) { return match(hint, candidate->places) == Match::Same; });
    if (hint.discriminator)
        prefer(some, [&](const Candidate *candidate) {
            return candidate->load->getDebugLoc()->getDiscriminator() == hint.discriminator;
        });
    if (hint.operand && !hint.operand->symbol.empty())
        prefer(some, [&](const Candidate *candidate) { return candidate->symbol == hint.operand->symbol; });
    if (hint.load_class != LoadClass::Unknown)
        prefer(some, [&](const Candidate *candidate) { return candidate->load_class == hint.load_class; });
    bool has_offsets = std::none_of(some.begin(), some.end(), [](const Candidate *one) { return one->walks; });
    if (hint.operand && has_offsets)
        prefer(some, [&](const Candidate *candidate) { return candidate->offset == hint.operand->displacement; });
    return some;
}

} // namespace cohtrace
