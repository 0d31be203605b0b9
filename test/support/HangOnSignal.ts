/**
 * A module that Node loads before Till (`node --import`): at a SIGUSR2 the event loop hangs forever, as after a bug.
 */
process.on("SIGUSR2", () => {
  for (;;);
})
