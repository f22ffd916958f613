//! What ran before a function's first instruction: the call that its return address follows, and the
//! stub that the call went through (a PLT entry, a virtual function's thunk).

use iced_x86::{Decoder, DecoderOptions, FlowControl, OpKind};

use super::{
    super::function::MAX_FUNCTION_BYTES,
    Text,
    candidate::{Candidate, Describer},
    cover::{Best, Rank, Sight},
    unbounded::Behind,
};

/// Bytes read of a stub whose bounds are not known.
const STUB_BYTES: usize = 32;
/// Instructions decoded of what a call goes to; a stub that jumps on is short.
const MAX_STUB: usize = 64;

/// The call that returns to `return_address` and, if it is direct, the indirect jumps of what it calls.
/// `None` where the caller has no known bounds; empty if no call ends there.
pub(super) fn calls(
    text: &mut impl Text,
    return_address: u64,
    bias: u64,
) -> Option<Vec<Candidate>> {
    // A call that does not return may be a function's last instruction.
    let caller = text.function(return_address.wrapping_sub(1)).ok()?;
    let start = caller.start.wrapping_sub(bias);
    let end = return_address.wrapping_sub(bias);
    let taken = &caller.bytes[..caller.bytes.len().min(MAX_FUNCTION_BYTES)];
    let mut describer = Describer::new();
    let mut decoder = Decoder::with_ip(64, taken, start, DecoderOptions::NONE).into_iter();
    let Some(instruction) = decoder.find(|instruction| instruction.next_ip() == end) else {
        return Some(Vec::new());
    };
    let mut found: Vec<Candidate> = describer.call(&instruction).into_iter().collect();
    if instruction.flow_control() == FlowControl::Call && !found.is_empty() {
        let target = instruction.near_branch_target();
        stub(text, &mut describer, target, bias, &mut found);
    }
    Some(found)
}

/// Appends the indirect jumps of the code at `target`, if that is short enough.
fn stub(
    text: &mut impl Text,
    describer: &mut Describer,
    target: u64,
    bias: u64,
    found: &mut Vec<Candidate>,
) {
    let address = target.wrapping_add(bias);
    let bounded = text
        .function(address)
        .ok()
        .filter(|function| function.start == address);
    let is_bounded = bounded.is_some();
    let bytes = bounded.map_or_else(
        || {
            let mut bytes = vec![0; STUB_BYTES];
            let got = text.bytes(address, &mut bytes);
            bytes.truncate(got);
            bytes
        },
        |function| function.bytes,
    );
    let decoder = Decoder::with_ip(64, &bytes, target, DecoderOptions::NONE);
    for instruction in decoder.into_iter().take(MAX_STUB) {
        found.extend(describer.jump(&instruction));
        let goes_on = instruction.flow_control() == FlowControl::Next;
        if !is_bounded && !goes_on {
            return;
        }
    }
}

/// Judges the calls that may end at `return_address` in code without function bounds, the likeliest first. Those that
/// go elsewhere are none.
pub(super) fn judge_unbounded(
    text: &mut impl Text,
    ip: u64,
    return_address: u64,
    sight: &Sight<'_>,
    best: &mut Best,
) {
    let mut describer = Describer::new();
    let behind = Behind::read(text, return_address);
    let mut calls: Vec<(Candidate, usize)> = Vec::new();
    for (instruction, votes) in behind.last_instructions() {
        let through_register = instruction.op0_kind() == OpKind::Register;
        let elsewhere = through_register && sight.register(instruction.op0_register()) != Some(ip);
        let call = describer.call(&instruction).filter(|call| {
            let covers = || call.cover(sight, 0, &mut Vec::new(), &mut Vec::new()) > Rank::Nothing;
            !elsewhere && call.leads_to(ip) && covers()
        });
        calls.extend(call.map(|call| (call, votes)));
    }
    calls.sort_by_key(|(_, votes)| std::cmp::Reverse(*votes));
    best.judge_alike(calls.iter().map(|(call, _)| call), sight);
}
