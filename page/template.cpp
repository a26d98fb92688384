#include "page/template.h"

#include "page_place_generated.h"

#ifdef GT_PAGE_FILE
// The assembler takes the file as it is: as an array it would cost the compiler seconds.
asm(".pushsection .rodata\n"
    "gputrace_page_begin: .incbin \"" GT_PAGE_FILE
    "\"\n"
    "gputrace_page_end: .byte 0\n"
    ".popsection\n");
extern "C" {
extern const char gputrace_page_begin[], gputrace_page_end[];
}
#endif

namespace gputrace {

std::string_view page_template() {
#ifdef GT_PAGE_FILE
  return {gputrace_page_begin, static_cast<std::size_t>(gputrace_page_end - gputrace_page_begin)};
#else
  return {};
#endif
}

}  // namespace gputrace
