/**
 * Preloaded into measured processes through BUN_OPTIONS. On SIGUSR2 they collect garbage, so that the remaining memory
 * is memory in use.
 */

process.on('SIGUSR2', () => {
  Bun.gc(true)
  setTimeout(() => Bun.gc(true), 100)
  if (process.env.BENCH_HEAP) void tellHeap(process.env.BENCH_HEAP)
})

/** For investigating growth by hand: writes the most frequent kinds of objects to a file. */
async function tellHeap(file: string): Promise<void> {
  await Bun.sleep(300)
  const { heapStats } = await import('bun:jsc')
  const { heapSize, objectTypeCounts } = heapStats()
  const most = Object.entries(objectTypeCounts).sort(([, a], [, b]) => b - a)
  await Bun.write(file, JSON.stringify({ heapSize, rss: process.memoryUsage.rss(), most: most.slice(0, 40) }))
}
