// Below a domain of one's own; below localhost itself Next.js takes one name only.
module.exports = { allowedDevOrigins: ["*.sandpod.localhost"] };
