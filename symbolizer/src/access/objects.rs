//! The variables that lie at places of the frame, of the file and of the thread.

use super::{
    flow::{Flow, UNNAMED},
    globals::segment_size,
    state::State,
    types::{Name, Scope},
    value::{Address, Root, Target},
};
use crate::Untraced;

impl Flow<'_> {
    /// A place in the frame as a place in a variable.
    pub(super) fn frame_object(
        &mut self,
        state: &State,
        address: Address,
        at: u64,
    ) -> Option<Address> {
        let frame = |register| state.frame(register);
        let (variable, within) = self.facts.variable_at(address.offset, at, frame)?;
        let local = self.locals.variables.get(variable as usize)?;
        let name = local.name.as_deref().unwrap_or(UNNAMED);
        let target = self
            .types
            .object(&self.view, local.ty?, Name::local(name))?;
        Some(Address {
            root: Root::Pointer(target),
            offset: within as i64,
            stride: address.stride,
            elements: false,
        })
    }

    /// A global place as a place in a variable.
    pub(super) fn global_object(&mut self, address: Address) -> Result<Address, Untraced> {
        let at = address.offset as u64;
        let (target, start) = self.known_object(at, false)?;
        Ok(Address {
            root: Root::Pointer(target),
            offset: at.wrapping_sub(start) as i64,
            ..address
        })
    }

    /// A thread-local place as a place in a variable.
    pub(super) fn thread_object(&mut self, address: Address) -> Result<Address, Untraced> {
        let at = self.thread_offset(address).ok_or(Untraced::Computed)?;
        let (target, start) = self.known_object(at, true)?;
        Ok(Address {
            root: Root::Pointer(target),
            offset: at.wrapping_sub(start) as i64,
            ..address
        })
    }

    /// The offset in the module's thread-local segment.
    pub(super) fn thread_offset(&self, address: Address) -> Option<u64> {
        let size = segment_size(self.module.image())?;
        u64::try_from(address.offset.wrapping_add(size)).ok()
    }

    /// The variable with a fixed place that covers an address, and where it starts.
    pub(super) fn known_object(
        &mut self,
        at: u64,
        thread_local: bool,
    ) -> Result<(Target, u64), Untraced> {
        if let Some(known) = self.objects.get(&(at, thread_local)) {
            return *known;
        }
        let object = if thread_local {
            self.module.thread_local_object(at)
        } else {
            self.module.object(at)
        };
        let found = object.ok().and_then(|object| {
            let name = Name {
                text: &object.name,
                scope: if thread_local {
                    Scope::Function
                } else {
                    Scope::Program
                },
            };
            let target = self.types.object(&self.view, object.ty?.0, name)?;
            Some((target, object.address))
        });
        let found = found.ok_or(Untraced::Untyped);
        self.objects.insert((at, thread_local), found);
        found
    }
}
