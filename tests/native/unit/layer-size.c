#include "runner/layer-size.h"
#include "unit.h"

#define MIB (1ull << 20)
#define MS 1000000ull

static const char *path;

static int make_layer(void) {
  path = unit_directory();
  int layer = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  EXPECT(mkdirat(layer, "zone.0", 0700) == 0 && mkdirat(layer, "zone.0/up", 0700) == 0);
  return layer;
}

static void remove_layer(int layer) { close(layer), unit_remove(path); }

UNIT("the size of a layer is looked at before what is left of it can be filled") {
  struct layer_size size;
  int layer = make_layer();
  layer_size_begin(&size, layer, 1024 * MIB, 0);
  EXPECT_NUMBER(layer_size_due(&size), 50 * MS);
  layer_size_begin(&size, layer, 80 * MIB, 0);
  EXPECT(layer_size_due(&size) < 25 * MS);
  layer_size_begin(&size, layer, MIB, 0);
  EXPECT_NUMBER(layer_size_due(&size), 2 * MS);
  remove_layer(layer);
}

UNIT("empty files take a part of the size of a layer") {
  char name[32];
  struct layer_size size;
  int layer = make_layer();
  layer_size_begin(&size, layer, MIB, 0);
  for (int i = 0; i < 1100; i++) snprintf(name, sizeof name, "zone.0/up/%d", i), close(openat(layer, name, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
  EXPECT_NUMBER(layer_size_is_over(&size, MS, 1), 1);
  remove_layer(layer);
}

UNIT("in memory, nothing is written while a look rests from the last walk") {
  struct layer_size size;
  int layer = make_layer();
  layer_size_begin(&size, layer, MIB, 0);
  size.is_in_memory = 1;
  size.free_bytes += 1024 * 1024 * MIB; /* as if a terabyte had been written since */
  size.rest_ns = UINT64_MAX;
  EXPECT_NUMBER(layer_size_is_over(&size, MS, 0), 1);
  remove_layer(layer);
}
