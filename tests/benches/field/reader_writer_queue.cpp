// One producer and one consumer with moodycamel::ReaderWriterQueue, built as for release.
//
// Known by readerwriterqueue.h: in each block, `front` (the consumer's) and `tail` (the producer's) are on lines of
// their own, each beside its owner's copy of the other. Each is stored by one thread and read by the other when its
// copy is used up: truly shared. So are the elements, the first of which lie beside `sizeMask`, which both only read. The
// lines of `frontBlock` and `tailBlock` are read.
//
// FIELD: {"language": "c++", "apt": ["libreaderwriterqueue-dev"], "findings": [
//   {"kinds": ["true-sharing", "mixed-sharing"], "names": ["front", "tail.value"]},
//   {"kinds": ["false-sharing", "mixed-sharing"], "names": ["sizeMask"], "missing": "right"}],
//   "others": ["heap", "mapping", "queue"]}
#define NDEBUG
#include "reader_writer_queue_checks.cpp"
