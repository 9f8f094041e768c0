const word = "first";
window.loads = window.loads || performance.timeOrigin;
document.getElementById("shown").innerText = `the ${word} word`;
import.meta.hot.accept();
