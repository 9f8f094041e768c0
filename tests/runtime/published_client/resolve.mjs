// Lets the client find the platform's modules in platform.mjs.

const ours = new URL("platform.mjs", import.meta.url).href;

export async function resolve(specifier, context, next) {
  const isPlatform = specifier === "cloudflare:workers" || specifier === "@cloudflare/containers";
  return isPlatform ? { url: ours, shortCircuit: true } : next(specifier, context);
}
