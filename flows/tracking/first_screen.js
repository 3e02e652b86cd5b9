// What Bandana adds to MLflow's first page, before MLflow's own code runs.
//
// 1. The Assistant, which opens by itself on loopback, stays closed; its button is hidden by a style sheet.
// 2. MLflow loads a shared view only from an address without search fields, and then writes the fields into the
//    address itself: after a reload or Back the charts would be gone. Fields that are the view's own are taken out again,
//    so that MLflow loads the view as from the first link. Fields that the reader changed stay; the charts then come from
//    the saved state of the experiment, which holds the view unless the reader has charts of their own.
// 3. Pages of single runs open beside MLflow's sidebar of model training, and not that of language models, until the reader
//    chooses.
(() => {
  const { key, fields, state } = JSON.parse(document.getElementById("bandana-view").textContent);
  const store = window.localStorage;

  const closeAssistant = () => {
    store.setItem("mlflow.assistant.fab.autoOpenedOnFirstLoad_v1", "true");
    store.setItem("mlflow.assistant.panelOpen_v1", "false");
  };

  const trainModels = () => {
    const place = "mlflow.workflowType_v1";
    if (!store.getItem(place)) store.setItem(place, JSON.stringify("machine_learning"));
  };

  const keepView = () => {
    const [path, query = ""] = window.location.hash.split("?");
    const experiment = /\/experiments\/([^/]+)\/runs$/.exec(path);
    const asked = new URLSearchParams(query);
    if (!experiment || asked.get("viewStateShareKey") !== key) return;
    const place = `MLflowLocalStorage-1.1-ExperimentPage-["${experiment[1]}"]-ReactComponentState`;
    if (!store.getItem(place)) store.setItem(place, JSON.stringify(state));
    const given = Object.keys(fields).filter((name) => asked.has(name));
    if (!given.length || given.some((name) => asked.get(name) !== fields[name])) return;
    given.forEach((name) => asked.delete(name));
    window.history.replaceState(window.history.state, "", `${path}?${asked}`);
  };

  const safely = (step) => () => {
    try {
      step();
    } catch (error) {
      console.warn("bandana:", error); // a browser without storage: MLflow as it is
    }
  };
  safely(closeAssistant)();
  safely(trainModels)();
  safely(keepView)();
  window.addEventListener("popstate", safely(keepView), true);
})();
