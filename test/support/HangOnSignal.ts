/**
 * Loaded into Till before everything else (`node --import`): at a SIGUSR2 its event loop stands still for good, as
 * after a mistake that never comes to an end.
 */
process.on("SIGUSR2", () => {
  for (;;);
})
