// Judges pods by the Pod Security Standards, with Kubernetes' own checks. A line of JSON on stdin is a pod; a line on
// stdout is the list of what the level "restricted" has against it.
package main

import (
	"encoding/json"
	"errors"
	"io"
	"log"
	"os"

	core "k8s.io/api/core/v1"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
)

func main() {
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		log.Fatal(err)
	}
	restricted := api.LevelVersion{Level: api.LevelRestricted, Version: api.LatestVersion()}
	pods, answers := json.NewDecoder(os.Stdin), json.NewEncoder(os.Stdout)
	// A misspelt field is none, and what it was to forbid is allowed.
	pods.DisallowUnknownFields()
	for {
		var pod core.Pod
		if err := pods.Decode(&pod); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			log.Fatal(err)
		}
		against := []string{}
		for _, result := range evaluator.EvaluatePod(restricted, &pod.ObjectMeta, &pod.Spec) {
			if !result.Allowed {
				against = append(against, result.ForbiddenReason+": "+result.ForbiddenDetail)
			}
		}
		if err := answers.Encode(against); err != nil {
			log.Fatal(err)
		}
	}
}
