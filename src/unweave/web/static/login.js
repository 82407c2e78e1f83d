// Hands the key to the server, which answers with a cookie that scripts cannot read.
const problem = document.getElementById("problem");

document.getElementById("form").addEventListener("submit", async (event) => {
  event.preventDefault();
  problem.hidden = true;
  try {
    const response = await fetch("/login", { method: "POST", body: document.getElementById("key").value });
    if (response.ok) {
      location.assign("/");
      return;
    }
    problem.textContent = (await response.json()).error;
  } catch {
    problem.textContent = "The server does not answer. Is it still running?";
  }
  problem.hidden = false;
  document.getElementById("key").select();
});
