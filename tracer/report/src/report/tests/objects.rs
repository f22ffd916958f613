//! Objects of other shapes: arrays, unknown memory, mappings, neighbours.

use expect_test::expect;

use super::{check, plain, verbose};
use crate::{
    access::{Cost, LineKey, Op, Pid, Place, SpaceId},
    finding::{Fact, Verdict},
    names::{Author, ElementLayout, Language, ObjectKind, ObjectLayout},
    report::fixture::{FakeNames, LINE, judgement, object, report, site, with_bytes},
};

#[test]
fn slots_of_one_array_and_a_reader_of_all() {
    let mut slots = object("slots", ObjectKind::Global, LINE, 64);
    slots.type_name = Some("long[8]".to_owned());
    slots.language = Some(Language::Cpp);
    slots.layout = Some(ObjectLayout {
        author: Author::Program,
        size: 64,
        element: Some(ElementLayout {
            type_name: Some("long".to_owned()),
            stride: 8,
            count: 8,
        }),
        members: Vec::new(),
    });
    let mut names = FakeNames {
        objects: vec![slots],
        ..FakeNames::default()
    }
    .code(0x401400, "worker(int)", "/src/slots.cc", 9, Language::Cpp)
    .code(
        0x401440,
        "print_progress()",
        "/src/slots.cc",
        22,
        Language::Cpp,
    )
    .comm(4009, "main");
    let mut sites = Vec::new();
    for n in 0..8u8 {
        let tid = 4001 + u32::from(n);
        names = names
            .field(n * 8, n * 8 + 8, 0, &format!("[{n}]"))
            .comm(tid, "worker");
        sites.push(site(
            n * 8,
            8,
            Op::Store,
            tid,
            0x401400,
            400 + u32::from(n),
            20,
        ));
        sites.push(site(n * 8, 8, Op::Load, 4009, 0x401440, 1, 2));
    }
    let judgement = with_bytes(
        judgement(Verdict::FalseSharing, 0.02, sites),
        0,
        u128::from(u64::MAX),
    );
    check(
        &report(&[judgement], &names),
        &expect![[r#"
            Threads fight over 1 cache line, by false sharing. It took 29.1 % of the sampled time.
            Looked at demo (pid 4000) for 5.0 s on 2 CPUs at 1,000 Hz per CPU by timer: 10,000 samples, 31,000
            memory accesses on 120 cache lines, 3 of them used by more than one thread.

            F1  FALSE SHARING  slots[0], slots[1], slots[2] and 5 more                        29.1 % of the time
                 Threads use different bytes of one cache line. CPUs exchange whole lines, so each store takes
                 the neighbours' bytes away too, and threads wait for each other without sharing any data.
              at global variable `slots` of type `long[8]`, 64 bytes; cache line 0x404040, 64 bytes

                  0       8       16      24      32      40      48      56
                 |AAAAAAAABBBBBBBBCCCCCCCCDDDDDDDDEEEEEEEEFFFFFFFFGGGGGGGGHHHHHHHH|
                 A-H: each written by one worker

                  bytes  what      op     thread       cpu  seen    time  function          source
               H  56-63  slots[7]  store  worker 4008  0     427   4.1 %  worker(int)       /src/slots.cc:9:9
               G  48-55  slots[6]  store  worker 4007  1     426   4.1 %  worker(int)       /src/slots.cc:9:9
               F  40-47  slots[5]  store  worker 4006  0     425   4.0 %  worker(int)       /src/slots.cc:9:9
               E  32-39  slots[4]  store  worker 4005  1     424   4.0 %  worker(int)       /src/slots.cc:9:9
               D  24-31  slots[3]  store  worker 4004  0     423   4.0 %  worker(int)       /src/slots.cc:9:9
               C  16-23  slots[2]  store  worker 4003  1     422   4.0 %  worker(int)       /src/slots.cc:9:9
               B  8-15   slots[1]  store  worker 4002  0     421   4.0 %  worker(int)       /src/slots.cc:9:9
               A  0-7    slots[0]  store  worker 4001  1     420   4.0 %  worker(int)       /src/slots.cc:9:9
               A  0-7    slots[0]  load   main 4009    1       3  0.01 %  print_progress()  /src/slots.cc:22:9
               B  8-15   slots[1]  load   main 4009    1       3  0.01 %  print_progress()  /src/slots.cc:22:9
                 and 6 more rows with 0.1 % of the time; all of them are in the JSON form (--json).

             why In 3,236 of the 3,412 samples that touch this line, the CPU was waiting for it; 9 threads took
                 part. That is 32.4 % of the time, of which 29.1 % fell into moments when several threads used
                 it by turns.
                 The threads use it at the same time: from one sample to the next, it changed hands 1,672 times;
                 samples in random order would have given 1,706.
                 Bytes 0-63 are stored by one thread each and touched by no other.
            gain More than nothing on lines of their own: samples do not tell how much, `--hold` does.
             fix Give each element of `slots` a 64-byte line of its own. Make each element
                     struct alignas(64) slot { long value; };
                 and use `slots[i].value`. C++17 also names the number:
                 `std::hardware_destructive_interference_size`.
                 An element grows from 8 to 64 bytes; 8 of them cost 448 bytes more. Without more memory: let
                 each thread work on a local variable and store to its element seldom, for example once at the
                 end.

            1 remark on how this was measured: --verbose.
        "#]],
    );
}

#[test]
fn heap_memory_of_a_stripped_program() {
    let mut heap = object("[heap]", ObjectKind::Heap, 0, 0);
    (heap.name, heap.start, heap.size) = (None, None, None);
    let mut names = FakeNames {
        objects: vec![heap],
        ..FakeNames::default()
    }
    .field(0, 64, 0, "");
    names.caveats = vec![
        "/opt/stripped/server has no symbols: functions are shown as module+address.".to_owned(),
    ];
    let mut sites = vec![
        site(16, 4, Op::Store, 4001, 0x403000, 300, 200),
        site(40, 4, Op::Load, 4002, 0x403040, 500, 10),
    ];
    sites[0].harvested = 300;
    sites.push(sites[1].clone());
    sites[2].site.offset = 44;
    (
        sites[2].stalled,
        sites[2].decoded,
        sites[2].harvested,
        sites[2].cost,
    ) = (0, 0, 80, Cost(0));
    let mut judgement = with_bytes(judgement(Verdict::FalseSharing, 0.0, sites), 0, 0xf_0000);
    judgement.weak = true;
    judgement.facts.push(Fact::HarvestedOnly);
    check(
        &report(&[judgement], &names),
        &expect![[r#"
            Threads fight over 1 cache line, by false sharing. It took 7.2 % of the sampled time.
            Looked at demo (pid 4000) for 5.0 s on 2 CPUs at 1,000 Hz per CPU by timer: 10,000 samples, 31,000
            memory accesses on 120 cache lines, 3 of them used by more than one thread.

            F1  FALSE SHARING  heap memory at 0x404040                                         7.2 % of the time
                 Threads use different bytes of one cache line. CPUs exchange whole lines, so each store takes
                 the neighbours' bytes away too, and threads wait for each other without sharing any data.
              at heap memory; cache line 0x404040, 64 bytes

                  0       8       16      24      32      40      48      56
                 |................AAAA....................bbbbbbbb................|
                 A: written by thread 4001; b: only read, by thread 4002

                  bytes  op     thread  cpu  seen   time  source
               b  40-43  load   4002    0     510  5.0 %  server+0x3040
               A  16-19  store  4001    1     800  3.0 %  server+0x3000
               b  44-47  load   4002    0     ~80  0.0 %  server+0x3040
                 ~ is inferred from the sampled loop; the other rows were in the sampled code itself.

             why In 800 of the 1,390 samples that touch this line, the CPU was waiting for it; 2 threads took
                 part. That is 8.0 % of the time, of which 7.2 % fell into moments when several threads used it
                 by turns.
                 The threads use it at the same time: from one sample to the next, it changed hands 681 times;
                 samples in random order would have given 695.
                 Bytes 16-19 are stored by one thread each and touched by no other.
                 The evidence is weak: the conflict shows only in accesses that were inferred from the loops
                 around the sampled instructions, not in the sampled instructions themselves.
            gain More than nothing on lines of their own: samples do not tell how much, `--hold` does.
             fix Different threads use bytes 16-19 (written at server+0x3000) and bytes 40-47 (read at
                 server+0x3040). Start each of these parts at a multiple of 64 bytes and let nothing else share
                 its line. The memory is on the heap and its type is not known here. Such alignment needs
                 `aligned_alloc(64, size)` in C, `alignas(64)` on the type in C++, `#[repr(align(64))]` in Rust.
                 Elements whose size is a multiple of 64 already only need their block to start at a line.

            What to keep in mind:
              - F1 rests on weak evidence: addresses inferred from the loops around the samples.
              - /opt/stripped/server has no symbols: functions are shown as module+address.

            1 remark on how this was measured: --verbose.
        "#]],
    );
}

#[test]
fn memory_that_two_processes_share() {
    let names = FakeNames {
        objects: vec![object("/dev/zero (deleted)", ObjectKind::Mapping, 0, 4096)],
        ..FakeNames::default()
    }
    .field(0, 64, 0, "")
    .code(0x401500, "bump", "/src/forked.c", 30, Language::C)
    .comm(4000, "forked")
    .comm(4100, "forked");
    let mut sites = vec![
        site(0, 8, Op::Rmw, 4000, 0x401500, 900, 20),
        site(8, 8, Op::Rmw, 4100, 0x401500, 880, 20),
    ];
    (sites[1].site.pid, sites[1].site.space) = (Pid(4100), SpaceId(1));
    let mut judgement = with_bytes(judgement(Verdict::FalseSharing, 0.0, sites), 0, 0xffff);
    judgement.key = LineKey(Place::Shared {
        dev: 1 << 32 | 5,
        inode: 1029,
        offset: 0,
    });
    check(
        &report(&[judgement], &names),
        &expect![[r#"
            Threads fight over 1 cache line, by false sharing. It took 16.0 % of the sampled time.
            Looked at demo (pid 4000) for 5.0 s on 2 CPUs at 1,000 Hz per CPU by timer: 10,000 samples, 31,000
            memory accesses on 120 cache lines, 3 of them used by more than one thread.

            F1  FALSE SHARING  /dev/zero (deleted)                                            16.0 % of the time
                 Threads use different bytes of one cache line. CPUs exchange whole lines, so each store takes
                 the neighbours' bytes away too, and threads wait for each other without sharing any data.
              at mapped memory `/dev/zero (deleted)`, 4,096 bytes; cache line shared:1:5:1029:0x0, 64 bytes

                  0       8       16      24      32      40      48      56
                 |AAAAAAAABBBBBBBB................................................|
                 A: written by forked 4000; B: written by forked 4100

                  bytes  op   thread       cpu  seen   time  function  source
               A  0-7    rmw  forked 4000  0     920  9.0 %  bump      /src/forked.c:30:9
               B  8-15   rmw  forked 4100  0     900  8.8 %  bump      /src/forked.c:30:9

             why In 1,780 of the 1,820 samples that touch this line, the CPU was waiting for it; 2 threads took
                 part. That is 17.8 % of the time, of which 16.0 % fell into moments when several threads used
                 it by turns.
                 The threads use it at the same time: from one sample to the next, it changed hands 892 times;
                 samples in random order would have given 910.
                 Bytes 0-15 are stored by one thread each and touched by no other.
                 2 processes share this memory, each at an address of its own.
            gain More than nothing on lines of their own: samples do not tell how much, `--hold` does.
             fix Different threads use bytes 0-7 (written at forked.c:30) and bytes 8-15 (written at
                 forked.c:30). Start each of these parts at a multiple of 64 bytes and let nothing else share
                 its line. The memory is a mapping that 2 processes share, so all of them must be built with the
                 same new layout; a mapping starts at a page, so offsets that are multiples of 64 are enough.

            1 remark on how this was measured: --verbose.
        "#]],
    );
}

#[test]
fn two_variables_on_one_line() {
    let mut ready = object("ready", ObjectKind::Global, LINE, 4);
    (ready.type_name, ready.file, ready.line) = (
        Some("int".to_owned()),
        Some("/src/main.c".to_owned()),
        Some(3),
    );
    let mut jobs = object("jobs", ObjectKind::Global, LINE + 4, 4);
    (jobs.type_name, jobs.file, jobs.line) = (
        Some("int".to_owned()),
        Some("/src/main.c".to_owned()),
        Some(4),
    );
    let names = FakeNames {
        objects: vec![ready, jobs],
        ..FakeNames::default()
    }
    .field(0, 4, 0, "")
    .field(4, 8, 1, "")
    .code(0x401600, "wait_ready", "/src/main.c", 11, Language::C)
    .code(0x401620, "do_job", "/src/main.c", 19, Language::C);
    let sites = vec![
        site(0, 4, Op::Load, 4001, 0x401600, 700, 20),
        site(4, 4, Op::Rmw, 4002, 0x401620, 300, 20),
    ];
    let judgement = with_bytes(judgement(Verdict::FalseSharing, 0.0, sites), 0, 0xf0);
    let report = report(&[judgement], &names);
    // The costlier one is the object; each row says which variable it is.
    assert_eq!(report.findings[0].object.name.as_deref(), Some("ready"));
    let fields: Vec<_> = report.findings[0]
        .accesses
        .iter()
        .map(|row| row.field.as_deref())
        .collect();
    assert_eq!(fields, [Some("ready"), Some("jobs")]);
    check(
        &report,
        &expect![[r#"
            Threads fight over 1 cache line, by false sharing. It took 9.0 % of the sampled time.
            Looked at demo (pid 4000) for 5.0 s on 2 CPUs at 1,000 Hz per CPU by timer: 10,000 samples, 31,000
            memory accesses on 120 cache lines, 3 of them used by more than one thread.

            F1  FALSE SHARING  ready and jobs                                                  9.0 % of the time
                 Threads use different bytes of one cache line. CPUs exchange whole lines, so each store takes
                 the neighbours' bytes away too, and threads wait for each other without sharing any data.
              at global variable `ready` of type `int`, 4 bytes, declared at /src/main.c:3; cache line 0x404040,
                 64 bytes

                  0       8       16      24      32      40      48      56
                 |aaaaBBBB........................................................|
                 a: only read, by thread 4001; B: written by thread 4002

                  bytes  what   op    thread  cpu  seen   time  function    source
               a  0-3    ready  load  4001    1     720  7.0 %  wait_ready  /src/main.c:11:9
               B  4-7    jobs   rmw   4002    0     320  3.0 %  do_job      /src/main.c:19:9

             why In 1,000 of the 1,040 samples that touch this line, the CPU was waiting for it; 2 threads took
                 part. That is 10.0 % of the time, of which 9.0 % fell into moments when several threads used it
                 by turns.
                 The threads use it at the same time: from one sample to the next, it changed hands 510 times;
                 samples in random order would have given 520.
                 Bytes 4-7 are stored by one thread each and touched by no other.
            gain More than nothing on lines of their own: samples do not tell how much, `--hold` does.
             fix `ready` (main.c:3) and `jobs` (main.c:4) are separate variables that only happen to lie on one
                 line. Start each on a 64-byte line of its own:
                     _Alignas(64) int ready;
                     _Alignas(64) int jobs;
                 `alignas(64)` is the same word after `#include <stdalign.h>` (C11), and built in since C23.
                 With nothing else on those lines, this costs 120 bytes.

            1 remark on how this was measured: --verbose.
        "#]],
    );
}

#[test]
fn heap_objects_are_called_by_the_type_that_their_instructions_know() {
    let jobs = |start| {
        let mut jobs = object("", ObjectKind::Heap, start, 8);
        (jobs.name, jobs.type_name) = (None, Some("struct jobs".to_owned()));
        (jobs.file, jobs.line) = (Some("/src/jobs.c".to_owned()), Some(14));
        jobs
    };
    let mut names = FakeNames {
        objects: vec![jobs(LINE), jobs(LINE + 8)],
        ..FakeNames::default()
    }
    .field(0, 8, 0, ".done")
    .field(8, 16, 1, ".done")
    .code(0x401600, "count_jobs", "/src/jobs.c", 26, Language::C);
    names.coverage.named = 1;
    let sites = vec![
        site(0, 8, Op::Rmw, 4001, 0x401600, 500, 20),
        site(8, 8, Op::Rmw, 4002, 0x401600, 500, 20),
    ];
    let judgement = with_bytes(judgement(Verdict::FalseSharing, 0.0, sites), 0, 0xffff);
    let all_told = report(std::slice::from_ref(&judgement), &names);
    let found = &all_told.findings[0];
    assert_eq!(found.object.name, None);
    assert_eq!(found.object.type_name.as_deref(), Some("struct jobs"));
    assert_eq!(found.accesses[0].field.as_deref(), Some(".done"));
    assert_eq!(all_told.run.typing.named, 1);
    let words = plain(&all_told);
    assert!(
        words.contains("F1  FALSE SHARING  struct jobs.done "),
        "{words}"
    );
    assert!(
        words.contains(
            "heap memory of type `struct jobs`, 8 bytes, a type declared at /src/jobs.c:14"
        ),
        "{words}"
    );
    assert!(!words.contains("did not tell the type"), "{words}");

    let reason = ("untyped", "the pointer has no type".to_owned());
    names.coverage.untraced.insert(reason, 3);
    let words = verbose(&report(&[judgement], &names));
    let words = words.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        words.contains("3 of 4 instructions did not tell the type of the memory without a name that they access: 3 the pointer has no type."),
        "{words}"
    );
}
