use super::*;

/// Where the code of the tests begins: in the second page of its mapping.
const CODE: u64 = 0x7000_1000;

/// `add $1,(%rdi); nop; nop; jmp` to the first nop; `ud2`, at offsets 0, 4, 5, 6 and 8.
const TEXT: [u8; 10] = [0x48, 0x83, 0x07, 0x01, 0x90, 0x90, 0xeb, 0xfc, 0x0f, 0x0b];

fn mapping() -> Mapping {
    Mapping {
        start: CODE - PAGE,
        len: 3 * PAGE,
        file_offset: 0,
        dev: 0,
        inode: 0,
        shared: false,
        executable: true,
        writable: true,
        name: String::new(),
        build_id: None,
        stamp: None,
    }
}

/// Memory from an address on.
struct Memory {
    start: u64,
    bytes: Vec<u8>,
}

impl Memory {
    fn new(text: &[u8]) -> Memory {
        let mut bytes = vec![0; 3 * PAGE as usize];
        bytes[PAGE as usize..][..text.len()].copy_from_slice(text);
        Memory {
            start: CODE - PAGE,
            bytes,
        }
    }

    fn read(&self, addr: u64, buffer: &mut [u8]) -> usize {
        let Some(at) = addr.checked_sub(self.start) else {
            return 0;
        };
        let there = self.bytes.get(at as usize..).unwrap_or_default();
        let got = there.len().min(buffer.len());
        buffer[..got].copy_from_slice(&there[..got]);
        got
    }

    /// Offsets of the instructions that are known once this one ran.
    fn see(&self, code: &mut NamelessCode, offset: u64) -> Option<Vec<u64>> {
        let mut read = |addr, buffer: &mut [u8]| self.read(addr, buffer);
        let known = code.see(Pid(1), CODE + offset, &mapping(), &mut read)?;
        Some(known.instructions.iter().map(|ip| ip - CODE).collect())
    }
}

#[test]
fn what_ran_and_what_follows_it_is_known_and_stays_so() {
    let memory = Memory::new(&TEXT);
    let mut code = NamelessCode::default();
    assert_eq!(memory.see(&mut code, 5), Some(vec![4, 5, 6]));
    assert_eq!(memory.see(&mut code, 0), Some(vec![0, 4, 5, 6]));
    assert_eq!(memory.see(&mut code, 6), Some(vec![0, 4, 5, 6]));
    let known = code.around(Pid(1), CODE + 4).unwrap();
    assert_eq!((known.start, &known.bytes[..]), (CODE, &TEXT[..8]));
    assert_eq!(known.starts, [CODE, CODE + 5]);
    // Not of another process, nor of what is next to it.
    assert!(code.around(Pid(2), CODE + 4).is_none());
    assert!(code.around(Pid(1), CODE + 8).is_none());
}

#[test]
fn other_code_at_the_same_place_is_learnt_anew() {
    let mut code = NamelessCode::default();
    assert_eq!(Memory::new(&TEXT).see(&mut code, 0), Some(vec![0, 4, 5, 6]));
    let other = Memory::new(&[0x90, 0x90, 0xc3]);
    assert_eq!(other.see(&mut code, 1), Some(vec![1, 2]));
}

#[test]
fn an_ip_in_the_middle_of_what_was_known_forgets_it() {
    let memory = Memory::new(&TEXT);
    let mut code = NamelessCode::default();
    assert!(memory.see(&mut code, 0).is_some());
    // `addl $1,(%rdi)` is within the first instruction.
    assert_eq!(memory.see(&mut code, 1), Some(vec![1, 4, 5, 6]));
}

#[test]
fn code_that_cannot_be_read_is_not_known_and_a_hole_before_it_does_no_harm() {
    let mut code = NamelessCode::default();
    let gone = Memory {
        start: 0,
        bytes: Vec::new(),
    };
    assert_eq!(gone.see(&mut code, 0), None);
    let mut memory = Memory::new(&TEXT);
    memory.bytes.drain(..PAGE as usize);
    memory.start = CODE;
    assert_eq!(memory.see(&mut code, 5), Some(vec![4, 5, 6]));
}

#[test]
fn what_is_remembered_is_bounded() {
    let memory = Memory::new(&[0x90; 4000]);
    let mut code = NamelessCode::default();
    for pid in 1..200 {
        let mut read = |addr, buffer: &mut [u8]| memory.read(addr, buffer);
        code.see(Pid(pid), CODE, &mapping(), &mut read);
        assert!(code.instructions <= MOST_INSTRUCTIONS);
    }
    assert!(code.pages.len() < 199);
}
