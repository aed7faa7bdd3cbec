/** Waiting that somebody may end early. */

/**
 * Call `react` with the reason when one of the signals is aborted, at once if one is already. Returns what stops that.
 *
 * Instead of `AbortSignal.any`, which keeps a trace of each call at a signal that outlives it.
 */
export function onAbort(
  signals: readonly (AbortSignal | undefined)[],
  react: (reason: unknown) => void,
): () => void {
  const stops: (() => void)[] = [];
  const stop = (): void => {
    for (const each of stops) each();
  };
  for (const signal of signals) {
    if (signal?.aborted) {
      stop();
      react(signal.reason);
      return () => undefined;
    }
    if (signal) {
      const listener = (): void => react(signal.reason);
      signal.addEventListener("abort", listener, { once: true });
      stops.push(() => signal.removeEventListener("abort", listener));
    }
  }
  return stop;
}

/** Return after `ms`. Throws the reason of a signal that is aborted before. */
export function sleep(ms: number, signals: readonly (AbortSignal | undefined)[]): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => {
      stop();
      resolve();
    }, ms);
    const stop = onAbort(signals, (reason) => {
      clearTimeout(timer);
      reject(reason);
    });
  });
}
