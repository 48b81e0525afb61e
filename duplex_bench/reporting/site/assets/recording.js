// The page of one recording: a moment that is chosen in the tables is shown in the player further down.
"use strict";
document.addEventListener("click", (event) => {
  if (event.target.closest("a[data-moment]")) document.getElementById("player").scrollIntoView({ block: "start" });
});
