/* Loaded into Postgres (LD_PRELOAD): the next flush fails, once, whenever there is the file that FAULTS_FSYNC names. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

static int fails(void) {
  const char *file = getenv("FAULTS_FSYNC");
  int before = errno;
  // Of several that flush at once, one takes the file away.
  if (file == NULL || unlink(file) != 0) {
    errno = before;
    return 0;
  }
  errno = EIO;
  return 1;
}

int fsync(int descriptor) {
  int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, "fsync");
  return fails() ? -1 : real(descriptor);
}

int fdatasync(int descriptor) {
  int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, "fdatasync");
  return fails() ? -1 : real(descriptor);
}
