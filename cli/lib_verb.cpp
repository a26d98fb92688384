// gputrace lib: where the library lies, for LD_PRELOAD=$(gputrace lib).
#include "cli/options.h"
#include "cli/output.h"
#include "cli/places.h"

namespace gputrace {

int lib_verb(const Arguments& arguments, Globals& globals) {
  OptionParser parser("gputrace lib", "Prints the path of the library: LD_PRELOAD=$(gputrace lib) CMD.", globals);
  if (const auto code = parser.parse(arguments)) return *code;
  const Places places = find_places();
  if (places.library.empty())
    return fail(kRuntimeError, "libgputrace.so is not where it belongs (../lib beside " + places.program +
                                   "): this installation is incomplete");
  Output output("");
  if (!output.open()) return kRuntimeError;
  output.write(places.library + "\n");
  return output.close();
}

}  // namespace gputrace
