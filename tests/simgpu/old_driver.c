/* A driver from before cuGetProcAddress_v2, with just enough to be asked for its devices. */
int cuInit(unsigned flags) {
  (void)flags;
  return 0;
}

int cuDeviceGetCount(int* count) {
  *count = 3;
  return 0;
}
